"""Cross-origin resource sharing (CORS), with the settings of Confluent's services.

| setting | default | meaning |
|---|---|---|
| `access.control.allow.origin` | not set | origins separated by commas, `*` for all; not set: no CORS |
| `access.control.allow.methods` | GET, POST, HEAD | methods that pages of these origins may use |
| `access.control.allow.headers` | X-Requested-With, Content-Type, Accept, Origin | allowed request headers |
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from moldau.http.asgi import Header, Message, Scope, Send, header

_SETTING: Final = "access.control.allow."
_METHODS: Final = "GET,POST,HEAD"
_HEADERS: Final = "X-Requested-With,Content-Type,Accept,Origin"
_MAX_AGE: Final = b"1800"


@dataclass(frozen=True, slots=True)
class Cors:
    origins: frozenset[str]
    methods: str
    headers: str

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> Cors | None:
        origins = frozenset(filter(None, map(str.strip, properties.get(f"{_SETTING}origin", "").split(","))))
        if not origins:
            return None
        return cls(
            origins,
            properties.get(f"{_SETTING}methods") or _METHODS,
            properties.get(f"{_SETTING}headers") or _HEADERS,
        )

    def allowed_origin(self, scope: Scope) -> bytes | None:
        """Return the origin of a request if its pages may use the service."""
        origin = header(scope, b"origin")
        if origin is None:
            return None
        allowed = "*" in self.origins or origin.decode("latin-1") in self.origins
        return origin if allowed else None

    def preflight(self, scope: Scope, origin: bytes) -> list[Header] | None:
        """Return the headers that answer a preflight request; None if the request is none."""
        if scope["method"] != "OPTIONS" or header(scope, b"access-control-request-method") is None:
            return None
        return [
            *self.response_headers(origin),
            (b"access-control-allow-methods", self.methods.encode("latin-1", "replace")),
            (b"access-control-allow-headers", self.headers.encode("latin-1", "replace")),
            (b"access-control-max-age", _MAX_AGE),
        ]

    def response_headers(self, origin: bytes) -> list[Header]:
        headers = [(b"access-control-allow-origin", origin), (b"vary", b"Origin")]
        if "*" not in self.origins:
            headers.append((b"access-control-allow-credentials", b"true"))
        return headers

    def adding(self, send: Send, origin: bytes) -> Send:
        """Return a `send` that adds the headers to the response."""
        added = self.response_headers(origin)

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *added]
            await send(message)

        return send_with_headers
