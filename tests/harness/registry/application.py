"""Requests to an ASGI application, without a socket."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from moldau.http.asgi import Application, Message


class Answer(NamedTuple):
    status: int
    body: bytes
    headers: dict[bytes, bytes]

    @property
    def json(self) -> Any:
        return json.loads(self.body)


async def ask(
    application: Application,
    method: str,
    path: str,
    body: Any = None,
    headers: Mapping[str, str] | None = None,
    **scope: Any,
) -> Answer:
    """Send a request; a body that is not bytes is encoded as JSON. `scope` adds keys to the scope."""
    data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    started: list[Message] = []
    parts: list[bytes] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": data}

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            started.append(message)
        else:
            parts.append(message["body"])

    raw, _, query = path.partition("?")
    request = {
        "type": "http",
        "method": method,
        "path": raw,
        "raw_path": raw.encode(),
        "query_string": query.encode(),
        "headers": [(name.lower().encode(), value.encode()) for name, value in (headers or {}).items()],
        "client": None,
        **scope,
    }
    await application(request, receive, send)
    return Answer(started[0]["status"], b"".join(parts), dict(started[0]["headers"]))
