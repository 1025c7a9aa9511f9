"""JSON text as Java's Avro reads and writes it.

Reading accepts comments. Writing follows Jackson: compact, numbers like `Double.toString`, control
characters with upper-case digits.
"""

from __future__ import annotations

import json
import math
import re
from json.encoder import encode_basestring
from typing import Any

from moldau.schemas.nesting import check_depth
from moldau.schemas.schema import InvalidSchema

#: A string or comment that does not end extends to the end, so that the search takes linear time.
_COMMENTS = re.compile(r'("(?:[^"\\]|\\.)*+(?:"|\Z))|/\*.*?(?:\*/|\Z)|//[^\n]*', re.DOTALL)
_LETTER_DIGITS = re.compile(r"\\u00[01][a-f]")
_WORD = re.compile(r"[\w$]+")
_SPACES = " \t\n\r"
#: Values in values, those of defaults and properties included; Jackson's limit is 1000.
MAX_DEPTH = 250
#: Numbers with more digits are refused, because converting them takes quadratic time.
_MAX_DIGITS = 1_000


def read(text: str) -> Any:
    """Parse a JSON text; comments are allowed."""
    check_depth(text, MAX_DEPTH)
    try:
        value, end = _DECODER.raw_decode(text, len(text) - len(text.lstrip(_SPACES)))
    except json.JSONDecodeError as error:
        bare = _without_comments(text)
        if bare == text:
            raise InvalidSchema(_explained(text, error)) from None
        return read(bare)
    except RecursionError:
        raise InvalidSchema("Document nesting depth exceeds the maximum allowed") from None
    dangling = text[end:].strip(_SPACES)
    if dangling and _without_comments(dangling).strip(_SPACES):
        raise InvalidSchema(f"dangling content after end of schema: {dangling}")
    return value


def write(value: Any) -> str:
    """Return the compact JSON text of a value."""
    if value is None:
        return "null"
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return _double(value)
    if isinstance(value, dict):
        return "{" + ",".join([f"{quoted(key)}:{write(item)}" for key, item in value.items()]) + "}"
    return "[" + ",".join(map(write, value)) + "]"


def quoted(text: str) -> str:
    written = encode_basestring(text)
    return _LETTER_DIGITS.sub(_upper, written) if "\\u00" in written else written


def _upper(match: re.Match[str]) -> str:
    return "\\u" + match[0][2:].upper()


def _double(value: float) -> str:
    """Format like Java's `Double.toString`; not-a-number and infinities are strings."""
    if math.isnan(value):
        return '"NaN"'
    if math.isinf(value):
        return '"Infinity"' if value > 0 else '"-Infinity"'
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return _plain(value)
    mantissa, _, exponent = f"{value!r}".partition("e")
    if not exponent:
        sign, digits = ("-", mantissa[1:]) if value < 0 else ("", mantissa)
        whole, _, fraction = digits.partition(".")
        significant = (whole + fraction).lstrip("0").rstrip("0")
        power = len(whole) - 1 if whole != "0" else -(len(fraction) - len(fraction.lstrip("0")) + 1)
        return f"{sign}{significant[0]}.{significant[1:] or '0'}E{power}"
    return f"{mantissa if '.' in mantissa else mantissa + '.0'}E{int(exponent)}"


def _plain(value: float) -> str:
    written = repr(value)
    return written if "e" not in written else f"{value:.17f}".rstrip("0")


def _without_comments(text: str) -> str:
    return _COMMENTS.sub(lambda match: match[1] or " ", text) if "/" in text else text


def _explained(text: str, error: json.JSONDecodeError) -> str:
    """Describe a syntax error in Jackson's words, which clients show to their users."""
    reason = error.msg
    if word := _WORD.match(text, error.pos):
        reason = (
            f"Unrecognized token '{word[0]}': was expecting (JSON String, Number, Array, Object"
            " or token 'null', 'true' or 'false')"
        )
    elif error.pos >= len(text):
        reason = "Unexpected end-of-input"
    return (
        f"com.fasterxml.jackson.core.JsonParseException: {reason}\n at [Source: REDACTED"
        " (`StreamReadFeature.INCLUDE_SOURCE_IN_LOCATION` disabled);"
        f" line: {error.lineno}, column: {error.colno}]"
    )


def _integer(digits: str) -> int:
    if len(digits) > _MAX_DIGITS:
        raise InvalidSchema(
            f"Number value length ({len(digits)}) exceeds the maximum allowed ({_MAX_DIGITS})"
        )
    return int(digits)


def _constant(word: str) -> Any:
    raise InvalidSchema(f"Non-standard token '{word}': numbers must be finite")


_DECODER = json.JSONDecoder(parse_int=_integer, parse_constant=_constant)
