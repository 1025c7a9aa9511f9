"""Forwards writes to the leader: an ASGI application around that of the registry.

The application raises `NotLeader` before it decides about a write. The request is then sent to the leader as
it was received, with the header `X-Forward`, and the leader's response is passed on once this instance has
replayed the write, so that its reads show it. A request with that header is not forwarded again: during an
election two instances may consider each other the leader.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from moldau.base.json_log import event
from moldau.http.asgi import Application, Message, Receive, Scope, Send, header, send_response
from moldau.http.errors import ApiError
from moldau.http.settings import integer
from moldau.registry.log.election import Election, NotLeader
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
#: A response may be on its way while its sender is replaced.
_GRACE_S: Final = 0.5
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
    """`catch_up` waits until this instance has replayed what the leader has acknowledged."""

    def __init__(
        self,
        application: Application,
        election: Election,
        catch_up: Callable[[], Awaitable[None]],
        settings: ForwardingSettings,
        tls: SSLContext | None = None,
    ) -> None:
        self._application = application
        self._election = election
        self._catch_up = catch_up
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
            await self._forward(scope, b"".join(parts), error.leader, send)

    async def close(self) -> None:
        if self._client is not None:
            await self._client.aclose()

    async def _forward(self, scope: Scope, body: bytes, leader: Identity | None, send: Send) -> None:
        """Send the request to the leader; a leader that refuses connections is replaced first."""
        if leader is None or header(scope, _FORWARD) is not None:
            raise ApiError(500, UNKNOWN_LEADER, "Leader not known.")
        try:
            answer = await self._request(scope, body, leader)
        except _Refused:
            answer = await self._request_next(scope, body, leader, send)
        if answer is not None:
            headers = [pair for pair in answer.headers.raw if pair[0].lower() not in _CONNECTION_HEADERS]
            await self._catch_up()
            await send_response(send, answer.status_code, answer.content, None, headers)

    async def _request_next(self, scope: Scope, body: bytes, leader: Identity, send: Send) -> Any:
        """Send the request to the next leader; return None if this instance is it, and has answered."""
        new_leader = await self._election.replace(leader)
        if new_leader is None:
            raise _failed(leader)
        try:
            if not self._election.leads:
                return await self._request(scope, body, new_leader)
            await self._application(scope, _replayed(body), send)
            return None
        except (NotLeader, _Refused):
            raise _failed(new_leader) from None

    async def _request(self, scope: Scope, body: bytes, leader: Identity) -> Any:
        import httpx2

        query = scope["query_string"].decode("latin-1")
        path = scope["raw_path"].decode("latin-1")
        url = f"{leader.url}{path}?{query}" if query else f"{leader.url}{path}"
        headers = self._headers(scope)
        sending = asyncio.ensure_future(
            self._opened().request(scope["method"], url, content=body, headers=headers)
        )
        try:
            return await self._unless_deposed(sending, leader)
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            logger.warning(
                "A request could not be forwarded to the leader %s: %r",
                leader.url,
                error,
                extra=event("registry.forwarding_failed", leader=leader.url),
            )
            if isinstance(error, httpx2.ConnectError) and _is_refusal(error):
                raise _Refused from error
            raise _failed(leader) from error

    async def _unless_deposed(self, sending: asyncio.Future[Any], leader: Identity) -> Any:
        """Return the leader's response; a paused leader sends none, so do not wait once another one leads."""
        deposed = asyncio.ensure_future(self._election.deposed(leader))
        try:
            await asyncio.wait((sending, deposed), return_when=asyncio.FIRST_COMPLETED)
            if not sending.done():
                await asyncio.wait((sending,), timeout=_GRACE_S)
            if not sending.done():
                raise _failed(leader)
            return sending.result()
        finally:
            sending.cancel()
            deposed.cancel()

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


class _Refused(Exception):
    """No process listens at the address of the leader; the request was not sent."""


def _is_refusal(error: BaseException | None) -> bool:
    while error is not None and not isinstance(error, ConnectionRefusedError):
        error = error.__cause__ or error.__context__
    return error is not None


def _failed(leader: Identity) -> ApiError:
    return ApiError(500, FORWARDING_FAILED, f"Error while forwarding the request to the leader {leader.url}")


def _replayed(body: bytes) -> Receive:
    async def receive() -> Message:
        return {"type": "http.request", "body": body}

    return receive
