"""Numbers in the normalized text, as Java prints them: decimal, up to three fraction digits, no exponent.

Confluent's registry reads a number as float or double if that type prints the same digits, otherwise as
decimal number. It is rounded by its binary value, and the digits of a large one are those of that value.
"""

from __future__ import annotations

import re
from decimal import ROUND_HALF_EVEN, Decimal, InvalidOperation, localcontext
from math import isfinite

from moldau.schemas import float32

#: Longer numbers stay as they are.
_MAX_CHARACTERS = 400
_INTEGER = re.compile(r"(?P<sign>-?)(?P<digits>0[xX][0-9a-fA-F]+|0[0-7]*|[1-9][0-9]*)[lL]?")
_DECIMAL = re.compile(r"(?P<number>-?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE]-?[0-9]+)?)[fFdD]?")


def normalized_number(text: str) -> str:
    """Return the normalized form of a number; a text that is not a number stays as it is."""
    if len(text) > _MAX_CHARACTERS:
        return text
    if integer := _INTEGER.fullmatch(text):
        return str(int(integer["sign"] + _digits(integer["digits"]), 0))
    decimal = _DECIMAL.fullmatch(text)
    # An integer with a leading zero is octal, or not a number.
    if decimal and not text.removeprefix("-").isdecimal():
        try:
            return _printed(_value(decimal["number"], text[-1]), text)
        except InvalidOperation:
            # An exponent beyond all limits.
            return text
    return text


def _digits(digits: str) -> str:
    return "0o" + digits if digits[0] == "0" and digits.isdecimal() else digits


def _value(number: str, suffix: str) -> float | Decimal:
    decimal, double = Decimal(number), float(number)
    single = float32.rounded(double)
    is_single = suffix in "fF" or (suffix not in "dD" and float32.shortest(double) == double)
    if is_single and _holds(single, decimal):
        return single
    if _holds(double, decimal) and (suffix in "dD" or Decimal(repr(double)) == decimal):
        return double
    return decimal


def _holds(value: float, decimal: Decimal) -> bool:
    """Return whether a binary number is neither infinite nor zero where the decimal number is not."""
    return isfinite(value) and bool(value) == bool(decimal)


def _printed(value: float | Decimal, text: str) -> str:
    # The shortest digits of a binary number; it is rounded by its exact value.
    shortest = value if isinstance(value, Decimal) else Decimal(repr(value))
    if abs(shortest.adjusted()) > _MAX_CHARACTERS:
        return text
    exponent = shortest.as_tuple().exponent
    if isinstance(exponent, int) and exponent >= -3:
        return _stripped(f"{shortest:f}")
    with localcontext(prec=4 * _MAX_CHARACTERS, rounding=ROUND_HALF_EVEN):
        return _stripped(f"{Decimal(value).quantize(Decimal('0.001')):f}")


def _stripped(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text
