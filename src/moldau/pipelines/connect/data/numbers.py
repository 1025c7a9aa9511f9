"""Java's arithmetic of numbers: widths that wrap, conversions that saturate, 32-bit floats."""

from __future__ import annotations

import math
import re
import struct
from decimal import Decimal

from moldau.base.java_numbers import java_double, java_float

_DECIMAL = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_INTEGER = re.compile(r"[+-]?[0-9]+")
_DOUBLE = re.compile(
    r"[+-]?(?:NaN|Infinity|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[fFdD]?)", re.ASCII
)


class Float32(float):
    """A number that was rounded to 32 bits; its text has only the digits that identify it."""

    __slots__ = ()

    def __repr__(self) -> str:
        return java_float(float(self))

    __str__ = __repr__


def float32(value: float) -> Float32:
    """Round to 32 bits; too large values become infinite, as in Java."""
    try:
        return Float32(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        return Float32(math.copysign(math.inf, value))


def wrap(value: int, bits: int) -> int:
    """Return the lowest bits as a signed number."""
    half = 1 << (bits - 1)
    return (value + half) % (half << 1) - half


def to_integer(value: int | float | Decimal, bits: int) -> int:
    """Convert to a signed number of this width like Java: integers wrap, floating points saturate."""
    if isinstance(value, float):
        return wrap(_saturated(value, max(bits, 32)), bits)
    return wrap(int(value), bits)


def _saturated(value: float, bits: int) -> int:
    if math.isnan(value):
        return 0
    largest = (1 << (bits - 1)) - 1
    return int(max(-largest - 1, min(largest, value))) if math.isinf(value) else _clamped(int(value), largest)


def _clamped(value: int, largest: int) -> int:
    return max(-largest - 1, min(largest, value))


def parse_integer(text: str, bits: int) -> int:
    """Parse like `Integer.parseInt` and its relatives; ValueError if the text is no number of this width."""
    if _INTEGER.fullmatch(text) is None:
        raise ValueError(f'For input string: "{text}"')
    value = int(text)
    if wrap(value, bits) != value:
        raise ValueError(f'Value out of range. Value:"{text}"')
    return value


def parse_double(text: str) -> float:
    """Parse like `Double.parseDouble`; ValueError if the text is no number."""
    stripped = text.strip()
    if _DOUBLE.fullmatch(stripped) is None:
        raise ValueError(f'For input string: "{text}"')
    return float(stripped.rstrip("fFdD") if stripped[-1] in "fFdD" else stripped)


def parse_decimal(text: str) -> Decimal:
    """Parse like `new BigDecimal`; ValueError if the text is no number."""
    if _DECIMAL.fullmatch(text) is None:
        raise ValueError(f"{text} is not a decimal number")
    return Decimal(text)


def number_text(value: int | float | Decimal) -> str:
    """Return a number as Java prints it."""
    if isinstance(value, Float32):
        return java_float(float(value))
    return java_double(value) if isinstance(value, float) else str(value)
