"""The formats without a schema: binary (base64), json and string."""

from __future__ import annotations

import base64
import binascii
import json
from typing import Any, Final

from moldau.http.asgi import encode_json
from moldau.rest.errors import bad_request, undeserializable

BINARY: Final = "binary"
JSON: Final = "json"
STRING: Final = "string"
PLAIN: Final = frozenset({BINARY, JSON, STRING})


def encode(kind: str, data: Any) -> bytes | None:
    """Return the bytes of a key or value; None for null. `ApiError` 400 if the data is not of the format."""
    if data is None:
        return None
    if kind == JSON:
        return encode_json(data)
    if not isinstance(data, str):
        expected = "a base64 string" if kind == BINARY else "a string"
        raise bad_request(f"data={_shown(data)} is not {expected}.")
    if kind == STRING:
        return data.encode("utf-8", "replace")
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        raise bad_request(f"data={_shown(data)} is not a valid base64 string.") from None


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
    """Parse JSON in UTF-8; `ValueError` also for NaN and Infinity, which Python's parser accepts."""
    return _DECODE(text if isinstance(text, str) else text.decode())


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON value")


#: `json.loads` would create a decoder for each value.
_DECODE: Final = json.JSONDecoder(parse_constant=_refuse).decode


def _shown(data: Any) -> str:
    text = json.dumps(data, ensure_ascii=False)
    return text if len(text) <= 100 else f"{text[:100]}…"
