"""Bodies of requests: read up to a limit, and parsed as JSON."""

from __future__ import annotations

import asyncio
import json
from typing import Any, Final

from moldau.http.asgi import Receive, Scope, header
from moldau.http.errors import ApiError

_CLOSE = ((b"connection", b"close"),)
_TIMEOUT_S: Final = 30
#: A larger body is not received: the connection is closed at once.
_MAX_DISCARDED: Final = 64 << 20


class ClientDisconnected(Exception):
    """The client closed the connection before its request was complete; no response can be sent."""


async def read_body(scope: Scope, receive: Receive, limit: int) -> bytes:
    """Return the body of a request; `ApiError` 413 if it is larger than `limit` bytes, 408 if it is late."""
    try:
        async with asyncio.timeout(_TIMEOUT_S):
            return await _read_body(scope, receive, limit)
    except TimeoutError:
        message = f"The body of the request did not arrive within {_TIMEOUT_S} seconds."
        raise ApiError(408, 408, message, _CLOSE) from None


async def _read_body(scope: Scope, receive: Receive, limit: int) -> bytes:
    announced = header(scope, b"content-length")
    if announced is not None and announced.isdigit() and int(announced) > limit:
        if int(announced) <= _MAX_DISCARDED:
            await _discard(receive)
        raise _too_large(limit)
    message = await receive()
    if message["type"] == "http.request" and not message.get("more_body"):
        body: bytes = message.get("body", b"")
        if len(body) > limit:
            raise _too_large(limit)
        return body
    parts, size = [], 0
    while True:
        if message["type"] != "http.request":
            raise ClientDisconnected
        part = message.get("body", b"")
        size += len(part)
        if size > limit:
            raise _too_large(limit)
        parts.append(part)
        if not message.get("more_body"):
            return b"".join(parts)
        message = await receive()


async def _discard(receive: Receive) -> None:
    """Receive the rest of a body: a client that still sends would not read the response."""
    while (await receive()).get("more_body"):
        pass


def parse_json(body: bytes, *, error_code: int = 400) -> Any:
    """Parse a body; `ApiError` 400 with the position of the mistake if it is not JSON in UTF-8."""
    try:
        return json.loads(body.decode("utf-8"), parse_constant=_refuse_constant)
    except UnicodeDecodeError as error:
        raise ApiError(400, error_code, f"The body is not UTF-8 (byte {error.start}).") from None
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise ApiError(400, error_code, f"The body is not JSON: {error.msg} ({where}).") from None
    except RecursionError:
        raise ApiError(400, error_code, "The JSON of the body is nested too deeply.") from None
    except ValueError as error:
        raise ApiError(400, error_code, f"The body is not JSON: {error}.") from None


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON value")


def _too_large(limit: int) -> ApiError:
    # The rest of the body may not be read, so the connection cannot be used again.
    return ApiError(413, 413, f"The body of the request is larger than {limit} bytes.", _CLOSE)
