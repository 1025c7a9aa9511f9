"""JSON text and values: bounded parsing, and the canonical text.

Numbers keep their notation: integers are `int`, all others `Decimal`, as Confluent's registry reads them. The
canonical text must be equal to Confluent's byte for byte, because it is hashed into the GUID of a schema.
"""

from __future__ import annotations

import json
import re
from decimal import Decimal
from functools import partial
from typing import Any

from moldau.schemas.nesting import check_depth
from moldau.schemas.schema import InvalidSchema

MAX_TEXT_CHARS = 16 << 20
#: Jackson's limit is 1000; a decoder of Python's standard library reaches the recursion limit before.
MAX_DEPTH = 500
#: The number of digits of the longest number, as in Jackson.
MAX_NUMBER_CHARS = 1000

_ESCAPED = re.compile(r'[\x00-\x1f"\\]')
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_WHITE_SPACE = " \t\r\n"


class JsonError(InvalidSchema):
    """A text that is not JSON, or exceeds a limit."""


def read(text: str) -> Any:
    """Parse a JSON text; raise `JsonError` if it is malformed, too large or too deep."""
    if len(text) > MAX_TEXT_CHARS:
        raise JsonError(f"The schema has {len(text)} characters; the limit is {MAX_TEXT_CHARS}")
    check_depth(text, MAX_DEPTH)
    try:
        # Like Jackson, which ignores what follows the value.
        return _DECODER.raw_decode(text, len(text) - len(text.lstrip(_WHITE_SPACE)))[0]
    except ValueError as error:
        raise JsonError("Invalid JSON schema") from error
    except RecursionError as error:
        raise JsonError("The schema is nested too deeply") from error


def _integer(digits: str) -> int:
    if len(digits) > MAX_NUMBER_CHARS:
        raise JsonError(f"A number has {len(digits)} digits; the limit is {MAX_NUMBER_CHARS}")
    return int(digits)


def _decimal(digits: str) -> Decimal:
    if len(digits) > MAX_NUMBER_CHARS:
        raise JsonError(f"A number has {len(digits)} digits; the limit is {MAX_NUMBER_CHARS}")
    value = Decimal(digits)
    # Java's BigDecimal has no negative zero.
    return abs(value) if value.is_zero() else value


_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), check_circular=False)
_SORTING_ENCODER = json.JSONEncoder(
    ensure_ascii=False, separators=(",", ":"), check_circular=False, sort_keys=True
)
_DECODER = json.JSONDecoder(parse_float=_decimal, parse_int=_integer, parse_constant=str)


def write(value: Any, *, sort_keys: bool = False) -> str:
    """Return the compact text of a value; with `sort_keys` the normalized text."""
    try:
        written = (_SORTING_ENCODER if sort_keys else _ENCODER).encode(value)
    except (TypeError, RecursionError):
        # A decimal number, or a value that is nested deeply.
        return _written(value, sort_keys)
    # The encoder writes control characters and orders characters beyond the basic plane in another way.
    is_plain = "\\u00" not in written and (written.isascii() or not sort_keys)
    return written if is_plain else _written(value, sort_keys)


def _written(value: Any, sort_keys: bool) -> str:
    pieces: list[str] = []
    _write(value, pieces.append, sort_keys)
    return "".join(pieces)


def _write(root: Any, put: Any, sort_keys: bool) -> None:
    # An explicit stack of pending pieces: strings are written as they are, callables expand a value.
    pending: list[Any] = [partial(_expand, root, sort_keys)]
    while pending:
        piece = pending.pop()
        if isinstance(piece, str):
            put(piece)
        else:
            pending.extend(reversed(piece()))


def _expand(value: Any, sort_keys: bool) -> list[Any]:
    if isinstance(value, dict):
        pieces: list[Any] = []
        # Java orders strings by UTF-16 code units.
        keys = sorted(value, key=lambda key: key.encode("utf-16-be", "surrogatepass")) if sort_keys else value
        for key in keys:
            pieces += [",", quoted(key), ":", partial(_expand, value[key], sort_keys)]
        return ["{", *pieces[1:], "}"]
    if isinstance(value, list):
        pieces = []
        for element in value:
            pieces += [",", partial(_expand, element, sort_keys)]
        return ["[", *pieces[1:], "]"]
    return [scalar(value)]


def scalar(value: Any) -> str:
    """Return the text of a string, number, boolean or null."""
    if isinstance(value, str):
        return quoted(value)
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def quoted(value: str) -> str:
    """Return a JSON string with the escapes that Jackson writes."""
    return '"' + _ESCAPED.sub(_escape, value) + '"'


def _escape(match: re.Match[str]) -> str:
    character = match.group()
    return _ESCAPES.get(character) or f"\\u{ord(character):04X}"
