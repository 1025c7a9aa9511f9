"""The formats without a schema: binary (base64), json and string."""

from __future__ import annotations

import base64
import binascii
import json
import math
from typing import Any, Final

from moldau.http.asgi import encode_json
from moldau.rest.errors import bad_request, nested_too_deeply, undeserializable

BINARY: Final = "binary"
JSON: Final = "json"
STRING: Final = "string"
PLAIN: Final = frozenset({BINARY, JSON, STRING})


class NumberOutOfRange(ValueError):
    """A number of a JSON text is larger than a double can be."""


def encode(kind: str, data: Any) -> bytes | None:
    """Return the bytes of a key or value; None for null. `ApiError` 400 if the data is not of the format."""
    if data is None:
        return None
    if kind == JSON:
        return encode_nested(data)
    if not isinstance(data, str):
        expected = "a base64 string" if kind == BINARY else "a string"
        raise bad_request(f"data={_shown(data)} is not {expected}.")
    if kind == STRING:
        return data.encode("utf-8", "replace")
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        raise bad_request(f"data={_shown(data)} is not a valid base64 string.") from None


def encode_nested(data: Any) -> bytes:
    """Return JSON; `ApiError` 422 if it is nested as deeply as it can just be read."""
    try:
        return encode_json(data)
    except RecursionError:
        raise nested_too_deeply() from None


def decode(kind: str, data: bytes | None) -> Any:
    """Return a key or value as JSON; `ApiError` 40801 if the bytes are not of the format."""
    if data is None:
        return None
    if kind == BINARY:
        return base64.b64encode(data).decode("ascii")
    try:
        return data.decode("utf-8") if kind == STRING else load(data)
    except (ValueError, RecursionError) as error:
        raise undeserializable(f"The record is not {kind}: {error}") from None


def load(text: bytes | bytearray | str) -> Any:
    """Parse JSON in UTF-8; `ValueError` also for NaN and infinite numbers, which Python's parser accepts."""
    return _DECODE(text if isinstance(text, str) else text.decode())


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON value")


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise NumberOutOfRange(f"the number {text[:100]} is out of the range of a double")
    return number


#: `json.loads` would create a decoder for each value.
_DECODE: Final = json.JSONDecoder(parse_float=_finite, parse_constant=_refuse).decode


def _shown(data: Any) -> str:
    try:
        text = json.dumps(data, ensure_ascii=False)
    except RecursionError:
        return "…"
    return text if len(text) <= 100 else f"{text[:100]}…"
