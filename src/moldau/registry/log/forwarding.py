"""Forwards writes to the leader: an ASGI application around that of the registry.

The application raises `NotLeader` before it decides about a write. The request is then sent to the leader as
it was received, with the header `X-Forward`, and the leader's response is passed on. A request with that
header is not forwarded again: during an election two instances may consider each other the leader.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from moldau.http.asgi import Application, Message, Receive, Scope, Send, header, send_response
from moldau.http.errors import ApiError
from moldau.http.settings import integer
from moldau.registry.log.election import NotLeader
from moldau.registry.log.identity import Identity

if TYPE_CHECKING:
    from ssl import SSLContext

logger = logging.getLogger(__name__)

FORWARDING_FAILED, UNKNOWN_LEADER = 50003, 50004
_FORWARD: Final = b"x-forward"
_FORWARDED_FOR: Final = b"x-forwarded-for"
_HEADERS: Final = frozenset(
    {b"content-type", b"accept", b"authorization", b"target-sr-cluster", b"x-request-id", _FORWARDED_FOR}
)
_READ_ONLY: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_CONNECTION_HEADERS: Final = frozenset(
    {b"connection", b"keep-alive", b"transfer-encoding", b"content-length", b"content-encoding", b"date"}
)


@dataclass(frozen=True, slots=True)
class ForwardingSettings:
    connect_timeout_ms: int = 60_000
    read_timeout_ms: int = 60_000
    #: Request headers that are forwarded, in lower case.
    headers: frozenset[bytes] = _HEADERS

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> ForwardingSettings:
        further = properties.get("inter.instance.headers.whitelist", "").split(",")
        return cls(
            connect_timeout_ms=integer(properties, "leader.connect.timeout.ms", 60_000),
            read_timeout_ms=integer(properties, "leader.read.timeout.ms", 60_000),
            headers=_HEADERS | {name.strip().lower().encode() for name in further if name.strip()},
        )


class Forwarding:
    def __init__(
        self, application: Application, settings: ForwardingSettings, tls: SSLContext | None = None
    ) -> None:
        self._application = application
        self._settings = settings
        self._tls = tls
        self._client: Any = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] in _READ_ONLY:
            await self._application(scope, receive, send)
            return
        parts: list[bytes] = []

        async def recorded() -> Message:
            message = await receive()
            if body := message.get("body"):
                parts.append(body)
            return message

        try:
            await self._application(scope, recorded, send)
        except NotLeader as error:
            if error.leader is None or header(scope, _FORWARD) is not None:
                raise ApiError(500, UNKNOWN_LEADER, "Leader not known.") from None
            await self._forward(scope, b"".join(parts), error.leader, send)

    async def close(self) -> None:
        if self._client is not None:
            await self._client.aclose()

    async def _forward(self, scope: Scope, body: bytes, leader: Identity, send: Send) -> None:
        import httpx2

        query = scope["query_string"].decode("latin-1")
        path = scope["raw_path"].decode("latin-1")
        url = f"{leader.url}{path}?{query}" if query else f"{leader.url}{path}"
        try:
            answer = await self._opened().request(
                scope["method"], url, content=body, headers=self._headers(scope)
            )
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            logger.warning("A request could not be forwarded to the leader %s: %r", leader.url, error)
            raise ApiError(
                500, FORWARDING_FAILED, f"Error while forwarding the request to the leader {leader.url}"
            ) from error
        headers = [pair for pair in answer.headers.raw if pair[0].lower() not in _CONNECTION_HEADERS]
        await send_response(send, answer.status_code, answer.content, None, headers)

    def _headers(self, scope: Scope) -> list[tuple[bytes, bytes]]:
        headers = [pair for pair in scope["headers"] if pair[0] in self._settings.headers]
        if scope["client"] is not None and header(scope, _FORWARDED_FOR) is None:
            headers.append((_FORWARDED_FOR, scope["client"][0].encode("latin-1")))
        return [*headers, (_FORWARD, b"true")]

    def _opened(self) -> Any:
        if self._client is None:
            import httpx2

            self._client = httpx2.AsyncClient(
                verify=True if self._tls is None else self._tls,
                trust_env=False,
                timeout=httpx2.Timeout(
                    self._settings.read_timeout_ms / 1000, connect=self._settings.connect_timeout_ms / 1000
                ),
            )
        return self._client
