"""A connection to another node: many requests in flight, responses matched by correlation id.

How it works. `connect` opens the socket, sends ApiVersions and logs in; `call` encodes a request in the
newest version that both sides support, registers its correlation id and waits. Responses are decoded as
their frames arrive.

Invariants:

- Every failure is a `KafkaError` that names the node and the reason; no other exception is raised.
- A request that times out closes the connection: responses arrive in order, so all later ones would be
  late, too. All requests in flight fail with the same reason.
- Frames, requests in flight and bytes buffered by the socket are bounded.
- A response with records keeps its receive buffer, so its views stay valid as long as it exists.
- Before a SASL session ends, the connection logs in again (KIP-368); calls wait meanwhile.
"""

from __future__ import annotations

import asyncio
import itertools
import socket
from collections.abc import Callable
from typing import Any, NamedTuple, cast

import moldau
from moldau.base.errors import ErrorCode, KafkaError
from moldau.network.connector import PLAINTEXT, Connector
from moldau.network.failures import (
    ConnectionLost,
    NodeUnreachable,
    NotKafka,
    TlsFailed,
    explain_protocol,
    reason_of,
    tls_reason,
)
from moldau.network.frames import FrameBuffer, FrameTooLarge
from moldau.network.login import log_in
from moldau.protocol.api_keys import ApiKey
from moldau.protocol.apis import APIS, Api
from moldau.protocol.headers import RequestHeader, decode_response_header, encode_request_header
from moldau.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from moldau.protocol.schema import DecodeError, EncodeError, Message, decode, encode

#: Their responses contain views of the receive buffer.
_WITH_RECORDS = frozenset({ApiKey.FETCH, ApiKey.FETCH_SNAPSHOT, ApiKey.SHARE_FETCH})
#: Less than the first bytes of TLS, HTTP and other text as a frame size: other protocols are detected at
#: once.
MAX_FRAME_BYTES = 256 * 1024 * 1024
MAX_IN_FLIGHT = 256
CONNECT_TIMEOUT_MS = 10_000
REQUEST_TIMEOUT_MS = 30_000
#: A session is renewed after this part of its lifetime.
_RENEW_AFTER = 0.85


class VersionRange(NamedTuple):
    lowest: int
    highest: int


class ByteCounter:
    """Bytes sent and received, by one connection or by several that share the counter."""

    __slots__ = ("received", "sent")

    def __init__(self) -> None:
        self.sent = 0
        self.received = 0


class _Waiting:
    """One request in flight."""

    __slots__ = ("api", "future", "version")

    def __init__(self, api: Api, version: int, future: asyncio.Future[Message]) -> None:
        self.api = api
        self.version = version
        self.future = future


class NodeConnection:
    """Open with `connect`; `call` from any task of the same loop; `close` when done."""

    def __init__(
        self,
        host: str,
        port: int,
        client_id: str | None,
        *,
        max_frame_bytes: int,
        connector: Connector = PLAINTEXT,
        counter: ByteCounter | None = None,
    ) -> None:
        self.host = host
        self.port = port
        self.api_versions: dict[int, VersionRange] = {}
        #: The ApiVersions response, with the supported and finalized features.
        self.node: ApiVersionsResponse = ApiVersionsResponse()
        #: Called once, when the connection ends for any reason.
        self.on_end: Callable[[], None] | None = None
        self.bytes = counter or ByteCounter()
        self._client_id = client_id
        self._connector = connector
        self._channel = _Channel(self, max_frame_bytes)
        self._waiting: dict[int, _Waiting] = {}
        self._correlation_ids = itertools.count()
        self._in_flight = asyncio.Semaphore(MAX_IN_FLIGHT)
        self._failure: KafkaError | None = None
        #: Whether the node has answered a request other than ApiVersions.
        self._answered = False
        #: Set by the TLS handshake.
        self._secured: asyncio.Future[None] | None = None
        #: Cleared while the connection logs in again.
        self._logged_in = asyncio.Event()
        self._logged_in.set()
        self._renewal: asyncio.TimerHandle | None = None
        self._renewing: asyncio.Task[None] | None = None

    @classmethod
    async def connect(
        cls,
        host: str,
        port: int,
        *,
        client_id: str | None = "moldau",
        timeout_ms: int = CONNECT_TIMEOUT_MS,
        max_frame_bytes: int = MAX_FRAME_BYTES,
        connector: Connector = PLAINTEXT,
        counter: ByteCounter | None = None,
    ) -> NodeConnection:
        """Open a connection, request the node's API versions and log in; `counter` counts its bytes.

        Raises `KafkaError` with the reason if it fails.
        """
        connection = cls(
            host, port, client_id, max_frame_bytes=max_frame_bytes, connector=connector, counter=counter
        )
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await connection._open(timeout_ms / 1000)
                await connection._negotiate()
                await connection._log_in()
        except TimeoutError:
            reason = "no response" if connection._channel.connected else "the connection was not accepted"
            connection.close()
            raise NodeUnreachable(host, port, f"{reason} within {timeout_ms} ms") from None
        except BaseException:
            connection.close()
            raise
        return connection

    @property
    def closed(self) -> bool:
        return self._failure is not None

    def supports(self, api_key: int) -> bool:
        return self.version_for(APIS[api_key]) is not None

    def version_for(self, api: Api) -> int | None:
        """Return the newest stable version that both sides support."""
        node = self.api_versions.get(api.key)
        if node is None:
            return None
        newest = min(api.max_version - (1 if api.latest_unstable else 0), node.highest)
        return newest if newest >= max(api.min_version, node.lowest) else None

    async def call(
        self,
        request: Message,
        version: int | None = None,
        *,
        timeout_ms: int = REQUEST_TIMEOUT_MS,
    ) -> Any:
        """Send a request and return the response of its API."""
        api = APIS[request.API_KEY]
        if version is None:
            version = self._negotiated(api)
        async with self._in_flight:
            await self._ready()
            future = await self._send(api, version, request)
            try:
                async with asyncio.timeout(timeout_ms / 1000):
                    return await future
            except TimeoutError:
                sentence = f"{self.host}:{self.port} did not answer {api.name} within {timeout_ms} ms"
                late = KafkaError(ErrorCode.REQUEST_TIMED_OUT, sentence)
                self._fail(late)
                raise late from None

    async def _ready(self) -> None:
        """Wait until requests may be sent: a request between the messages of a login would end it."""
        await self._channel.writable()
        while not self._logged_in.is_set():
            await self._logged_in.wait()
            await self._channel.writable()

    def close(self) -> None:
        self._fail(ConnectionLost(f"the connection to {self.host}:{self.port} was closed"))

    def _negotiated(self, api: Api) -> int:
        version = self.version_for(api)
        if version is not None:
            return version
        node = self.api_versions.get(api.key)
        supports = "does not support it" if node is None else f"supports {node.lowest} to {node.highest}"
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION,
            f"this client needs {api.name} version {api.min_version} to {api.max_version}; "
            f"{self.host}:{self.port} {supports}",
        )

    async def _open(self, timeout_seconds: float) -> None:
        secured: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        try:
            if self._connector.security.tls is not None:
                self._secured = secured
            await self._connector.open(
                self._channel, self.host, self.port, lambda _: _complete(secured), timeout_seconds
            )
            if self._secured is not None:
                await secured
        except socket.gaierror as error:
            reason = f"the name cannot be resolved ({error.strerror})"
            passing = error.errno == socket.EAI_AGAIN
            raise NodeUnreachable(self.host, self.port, reason, passing=passing) from error
        except ConnectionRefusedError as error:
            raise NodeUnreachable(self.host, self.port, "connection refused", refused=True) from error
        except OSError as error:
            raise NodeUnreachable(self.host, self.port, reason_of(error)) from error

    async def _negotiate(self) -> None:
        """Send ApiVersions in our newest version; an older node answers in version 0 with its versions."""
        api = APIS[ApiKey.API_VERSIONS]
        request = ApiVersionsRequest(
            client_software_name="moldau", client_software_version=moldau.__version__
        )
        version = api.max_version
        for _ in range(2):
            answer = cast(ApiVersionsResponse, await (await self._send(api, version, request)))
            if answer.error_code != ErrorCode.UNSUPPORTED_VERSION:
                break
            known = [key.max_version for key in answer.api_keys if key.api_key == ApiKey.API_VERSIONS]
            version = min([api.max_version, *known]) if known else 0
        if answer.error_code != ErrorCode.NONE:
            raise KafkaError(ErrorCode(answer.error_code), f"{self.host}:{self.port} refused ApiVersions")
        self.node = answer
        self.api_versions = {
            key.api_key: VersionRange(key.min_version, key.max_version) for key in answer.api_keys
        }

    async def _log_in(self) -> None:
        login = self._connector.security.sasl
        if login is None:
            return
        lifetime_ms = await log_in(self._login_call, login, self.host, self.port)
        if lifetime_ms > 0:
            loop = asyncio.get_running_loop()
            self._renewal = loop.call_later(lifetime_ms * _RENEW_AFTER / 1000, self._renew)

    async def _login_call(self, request: Message) -> Any:
        api = APIS[request.API_KEY]
        return await (await self._send(api, self._negotiated(api), request))

    def _renew(self) -> None:
        self._logged_in.clear()
        self._renewing = asyncio.get_running_loop().create_task(self._log_in_again())

    async def _log_in_again(self) -> None:
        try:
            async with asyncio.timeout(REQUEST_TIMEOUT_MS / 1000):
                await self._log_in()
        except KafkaError as error:
            self._fail(error)
        except TimeoutError:
            self._fail(ConnectionLost(f"{self.host}:{self.port} did not answer the new login"))
        finally:
            self._logged_in.set()

    async def _send(self, api: Api, version: int, request: Message) -> asyncio.Future[Message]:
        await self._channel.writable()
        if self._failure is not None:
            raise self._failure
        correlation_id = next(self._correlation_ids) & 0x7FFFFFFF
        header = encode_request_header(RequestHeader(api.key, version, correlation_id, self._client_id))
        try:
            parts = encode(request, version)
        except EncodeError as error:
            sentence = f"{self.host}:{self.port} supports {api.name} only up to version {version}: {error}"
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, sentence) from error
        size = len(header) + sum(map(len, parts))
        future: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._waiting[correlation_id] = _Waiting(api, version, future)
        self.bytes.sent += 4 + size
        self._channel.write([size.to_bytes(4, "big"), header, *parts])
        return future

    def _handle_response(self, frame: memoryview) -> bool:
        """Complete the request of a response; return whether the response keeps the buffer."""
        correlation_id = int.from_bytes(frame[:4], "big", signed=True)
        waiting = self._waiting.get(correlation_id)
        if waiting is None:
            raise DecodeError(f"a response without request (correlation id {correlation_id})")
        api, version = waiting.api, waiting.version
        _, body = decode_response_header(api.key, version, frame)
        if api.key == ApiKey.API_VERSIONS and bytes(frame[body : body + 2]) == b"\x00\x23":
            version = 0
        if waiting.future.done():
            del self._waiting[correlation_id]
            return False
        response = decode(api.response, frame, version, body)
        del self._waiting[correlation_id]
        self._answered = self._answered or api.key != ApiKey.API_VERSIONS
        waiting.future.set_result(response)
        return api.key in _WITH_RECORDS

    def _lost(self, sentence: str) -> None:
        """Fail because the node closed the connection; a new connection is often refused for its protocol."""
        if self._answered:
            self._fail(ConnectionLost(sentence))
            return
        protocol = self._connector.security.protocol
        hint = f"it may be a listener with another security.protocol than {protocol}"
        self._fail(ConnectionLost(f"{sentence} without an answer: {hint}", unanswered=True))

    def _fail(self, failure: KafkaError) -> None:
        first = self._failure is None
        if self._failure is None:
            self._failure = failure
        self._channel.abort()
        if self._renewal is not None:
            self._renewal.cancel()
        if self._secured is not None and not self._secured.done():
            self._secured.set_exception(self._failure)
            self._secured.exception()
        waiting, self._waiting = self._waiting, {}
        for request in waiting.values():
            if not request.future.done():
                request.future.set_exception(self._failure)
                request.future.exception()
        if first and self.on_end is not None:
            self.on_end()


class _Channel(asyncio.BufferedProtocol):
    """The socket's side of a `NodeConnection`."""

    def __init__(self, connection: NodeConnection, max_frame_bytes: int) -> None:
        self._connection = connection
        self._frames = FrameBuffer(max_frame_bytes)
        self._transport: asyncio.Transport | None = None
        self._may_write = asyncio.Event()
        self._may_write.set()
        self._first_bytes = b""
        self.connected = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self.connected = True

    def connection_lost(self, exc: Exception | None) -> None:
        self._may_write.set()
        host, port = self._connection.host, self._connection.port
        reason = tls_reason(exc)
        if reason is not None:
            self._connection._fail(TlsFailed(host, port, reason))
            return
        detail = f" ({reason_of(exc)})" if isinstance(exc, OSError) else ""
        self._connection._lost(f"{host}:{port} closed the connection{detail}")

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._frames.writable()

    def buffer_updated(self, nbytes: int) -> None:
        frames = self._frames
        if not self._first_bytes:
            self._first_bytes = bytes(frames.writable()[: min(nbytes, 16)])
        frames.received(nbytes)
        self._connection.bytes.received += nbytes
        try:
            while (frame := frames.next_frame()) is not None:
                if self._connection._handle_response(frame):
                    frames.keep()
        except (FrameTooLarge, DecodeError) as error:
            host, port = self._connection.host, self._connection.port
            self._connection._fail(NotKafka(host, port, explain_protocol(self._first_bytes) or str(error)))

    def pause_writing(self) -> None:
        self._may_write.clear()

    def resume_writing(self) -> None:
        self._may_write.set()

    async def writable(self) -> None:
        await self._may_write.wait()

    def write(self, parts: list[bytes | memoryview]) -> None:
        if self._transport is not None:
            self._transport.writelines(parts)

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()


def _complete(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
