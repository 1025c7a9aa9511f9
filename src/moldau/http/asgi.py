"""The types of ASGI, and responses sent over it.

Services are bare ASGI applications: a request of a registry takes less time than the layers of a framework.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any, Final

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]
Header = tuple[bytes, bytes]

JSON: Final = b"application/json"
#: `json.dumps` would create an encoder for each value.
_ENCODE: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
#: The key of the `KafkaPrincipal` in a scope: the user of the request, ANONYMOUS without authentication.
PRINCIPAL: Final = "moldau.principal"
#: The key of the `Credentials` in a scope: the content of the Authorization header; None without one. They
#: are verified only if the service has `authentication.method`.
CREDENTIALS: Final = "moldau.credentials"


def header(scope: Scope, name: bytes) -> bytes | None:
    """Return the value of a request header, whose name is in lower case; the first one if it is repeated."""
    for each, value in scope["headers"]:
        if each == name:
            found: bytes = value
            return found
    return None


async def send_response(
    send: Send,
    status: int,
    body: bytes = b"",
    content_type: bytes | None = JSON,
    headers: Iterable[Header] = (),
) -> None:
    """Send a whole response."""
    length = b"%d" % len(body)
    if content_type is None:
        start = [(b"content-length", length), *headers]
    else:
        start = [(b"content-type", content_type), (b"content-length", length), *headers]
    await send({"type": "http.response.start", "status": status, "headers": start})
    await send({"type": "http.response.body", "body": body})


async def send_json(
    send: Send, status: int, value: object, content_type: bytes = JSON, headers: Iterable[Header] = ()
) -> None:
    """Send a value as compact JSON in UTF-8."""
    await send_response(send, status, encode_json(value), content_type, headers)


def encode_json(value: object) -> bytes:
    """Return compact JSON; `ValueError` for NaN and infinite numbers, which JSON does not have."""
    try:
        return _ENCODE(value).encode()
    except UnicodeEncodeError:
        # Half of a surrogate pair has no form in UTF-8, only an escape in JSON.
        return json.dumps(value, allow_nan=False, separators=(",", ":")).encode("ascii")
