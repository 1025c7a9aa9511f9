"""One accepted connection: requests in, responses out in the order of the requests.

How it works. Bytes are received in a `FrameBuffer`; each complete frame is dispatched, which returns a
response at once (a list of parts) or later (an awaitable). `ResponseWriter` writes the responses.

Invariants:

- Only requests that the dispatcher marks as `overlapping` (a produce that waits for replication or a flush)
  let the next frame be dispatched before they are answered, up to `MAX_OVERLAPPING` of them. All others are
  handled one at a time, so the node holds at most one large response for a client.
- No frame is dispatched while the client does not read earlier responses, while the connection is muted by
  a quota, or when it is closing. Reading pauses when the buffer is full; TCP flow control does the rest.
- Requests that a client sent before it disconnected are dispatched, though it does not receive the
  responses: a client may commit offsets, leave its group and disconnect. Requests that then wait are
  cancelled.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final, Protocol

from moldau.base.json_log import event
from moldau.base.log_throttle import Repeats
from moldau.base.printable import one_line
from moldau.network.frames import FrameBuffer, FrameTooLarge
from moldau.network.responses import Parts, Response, ResponseWriter
from moldau.security.principal import KafkaPrincipal

if TYPE_CHECKING:
    from ssl import SSLObject

logger = logging.getLogger(__name__)

MAX_OVERLAPPING = 64
WRITE_HIGH_WATER = 256 * 1024
#: The time between a last response and the end of the connection: kafka-python ignores a response that it
#: reads together with the end.
_CLOSE_DELAY_SECONDS = 0.05
#: Up to this many requests are dispatched after the client has disconnected.
_MAX_AFTER_DISCONNECT = 16
_refusals: Final = Repeats(interval_s=1.0)


class CloseConnection(Exception):
    """The dispatcher cannot continue with this client; the message is the reason."""


class Dispatcher(Protocol):
    def dispatch(self, connection: Connection, frame: memoryview) -> Response: ...

    def disconnected(self, connection: Connection) -> None: ...


class Connection(asyncio.BufferedProtocol):
    def __init__(
        self,
        dispatcher: Dispatcher,
        max_frame: int,
        loop: asyncio.AbstractEventLoop,
        on_open: Callable[[Connection], bool],
        on_close: Callable[[Connection], None],
        stalled: dict[Connection, None] | None = None,
        on_login: Callable[[Connection], None] | None = None,
    ) -> None:
        self.peer_host = ""
        self.peer_port = 0
        #: The client, once it is authenticated.
        self.principal: KafkaPrincipal | None = None
        #: When the SASL session ends, on the monotonic clock; None: it does not (KIP-368).
        self.session_ends_at: float | None = None
        #: Name and version of the client's software, from ApiVersions.
        self.client_software = ("unknown", "unknown")
        self.last_activity = loop.time()
        self.requests = 0
        #: Called when data arrives while a request is being handled that delays the next.
        self.on_more: Callable[[], None] | None = None
        self._dispatcher = dispatcher
        self._frames = FrameBuffer(max_frame)
        self._loop = loop
        self._on_open = on_open
        self._on_close = on_close
        self._on_login = on_login
        #: Connections whose client does not read its responses; shared with the listener's limits.
        self._stalled = {} if stalled is None else stalled
        self._transport: asyncio.Transport | None = None
        self._writer = ResponseWriter()
        self._slots: deque[_Slot] = deque()
        self._exclusive = False
        self._writing_paused = False
        self._reading_paused = False
        self._held = False
        #: Ends the mute of a client that exceeds a quota.
        self._unmute: asyncio.TimerHandle | None = None
        self._closing = False

    # The protocol.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = self._writer.transport = transport  # type: ignore[assignment]
        peer = transport.get_extra_info("peername") or ("", 0)
        self.peer_host = java_address(str(peer[0]))
        self.peer_port = int(peer[1]) if len(peer) > 1 else 0
        self._transport.set_write_buffer_limits(high=WRITE_HIGH_WATER)  # type: ignore[union-attr]
        if not self._on_open(self):
            self.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        tasks = [slot.task for slot in self._slots if slot.task is not None]
        if not self._closing:
            tasks += self._dispatch_rest()
        self._closing = True
        self._slots.clear()
        # Not at once: requests that were just dispatched have not taken their first step yet.
        self._loop.call_soon(_cancel, tasks)
        self._stalled.pop(self, None)
        if self._unmute is not None:
            self._unmute.cancel()
            self._unmute = None
        self._on_close(self)
        self._dispatcher.disconnected(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._frames.writable()

    def buffer_updated(self, nbytes: int) -> None:
        self._frames.received(nbytes)
        self.last_activity = self._loop.time()
        self._pump()
        if self._exclusive and self.on_more is not None:
            self.on_more()

    def eof_received(self) -> bool:
        return False

    def pause_writing(self) -> None:
        self._writing_paused = True
        self._stalled[self] = None

    def resume_writing(self) -> None:
        self._writing_paused = False
        self._stalled.pop(self, None)
        self._pump()

    # For the listener and handlers.

    @property
    def idle(self) -> bool:
        return not self._slots and self._unmute is None

    @property
    def has_more(self) -> bool:
        """Whether the client has sent data that is not dispatched yet."""
        return self._frames.buffered > 0

    @property
    def buffer_bytes(self) -> int:
        """The memory for received data, with that of TLS."""
        of_tls = 0 if self._transport is None else self._transport.get_extra_info("buffer_bytes", 0)
        return self._frames.size + int(of_tls)

    @property
    def unsent_bytes(self) -> int:
        return self._transport.get_write_buffer_size() if self._transport is not None else 0

    @property
    def ssl_object(self) -> SSLObject | None:
        """The TLS session; None without TLS."""
        session: SSLObject | None = None
        if self._transport is not None:
            session = self._transport.get_extra_info("ssl_object")
        return session

    def logged_in(self, principal: KafkaPrincipal) -> None:
        """Take over the client of a completed login or re-authentication."""
        self.principal = principal
        if self._on_login is not None:
            self._on_login(self)

    def limit_frames(self, max_frame: int) -> None:
        """Accept frames up to this size from now on."""
        self._frames.max_frame = max_frame

    def hold(self) -> None:
        """Read nothing until `release`: the node has reached `max.connections`."""
        self._held = True
        self._pause_reading()

    def release(self) -> None:
        self._held = False
        self._pump()

    def mute(self, milliseconds: int) -> None:
        """Dispatch no request for this long: the client has exceeded a quota. Responses are still sent."""
        if self._closing:
            return
        until = self._loop.time() + milliseconds / 1000
        if self._unmute is not None:
            if until <= self._unmute.when():
                return
            self._unmute.cancel()
        self._unmute = self._loop.call_at(until, self.end_mute)

    def end_mute(self) -> None:
        """Dispatch requests again: the time is over, or the quota has changed."""
        if self._unmute is not None:
            self._unmute.cancel()
            self._unmute = None
            self._pump()

    def take_write_seconds(self, now: Callable[[], float]) -> float:
        """Return the time spent on writing responses since the last call, measured from the first call on."""
        self._writer.now = now
        seconds, self._writer.seconds = self._writer.seconds, 0.0
        return seconds

    def keep_frame(self) -> None:
        """Do not reuse the bytes of the frame being dispatched: they are needed after the call."""
        self._frames.keep()

    def close(self) -> None:
        """Stop dispatching; responses that are ready are still sent."""
        self._closing = True
        self._writer.flush()
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        self._closing = True
        if self._transport is not None:
            self._transport.abort()

    # Dispatching.

    def _blocked(self) -> bool:
        return (
            self._closing
            or self._held
            or self._writing_paused
            or self._exclusive
            or len(self._slots) >= MAX_OVERLAPPING
            or self._unmute is not None
        )

    def _pump(self) -> None:
        """Dispatch complete frames as far as the invariants allow."""
        if self._writer.corked:
            return
        self._writer.corked = True
        try:
            while not self._blocked():
                frame = self._frames.next_frame()
                if frame is None:
                    break
                self._dispatch(frame)
        except (CloseConnection, FrameTooLarge) as reason:
            self._log_refusal(str(reason))
            self.close()
        finally:
            self._writer.corked = False
            self._writer.flush()
        self._regulate_reading()

    def _dispatch(self, frame: memoryview) -> None:
        self.requests += 1
        response = self._dispatcher.dispatch(self, frame)
        if response.pending is None:
            if not self._slots:
                self._writer.write(response.parts)
            else:
                self._slots.append(_Slot(response.parts))
                # The response waits for earlier ones; after a large one no further request is dispatched.
                self._exclusive = sum(map(len, response.parts)) > WRITE_HIGH_WATER
            return
        slot = _Slot(None, response.closes)
        self._slots.append(slot)
        self._exclusive = not response.overlapping
        slot.task = asyncio.ensure_future(response.pending)
        slot.task.add_done_callback(lambda task: self._finished(slot, task))

    def _dispatch_rest(self) -> list[asyncio.Future[Parts]]:
        """Dispatch requests that arrived before the client disconnected; return those that wait."""
        started: list[asyncio.Future[Parts]] = []
        if self._held or self._writing_paused or self._unmute is not None:
            return started
        try:
            for _ in range(_MAX_AFTER_DISCONNECT):
                frame = self._frames.next_frame()
                if frame is None:
                    break
                pending = self._dispatcher.dispatch(self, frame).pending
                if pending is not None:
                    started.append(asyncio.ensure_future(pending))
        except (CloseConnection, FrameTooLarge) as reason:
            logger.info(
                "requests of the closed connection from %s:%d are dropped: %s",
                self.peer_host,
                self.peer_port,
                one_line(str(reason)),
            )
        for each in started:
            each.add_done_callback(_retrieve_exception)
        return started

    def _finished(self, slot: _Slot, task: asyncio.Future[Parts]) -> None:
        if task.cancelled():
            return
        error = task.exception()
        if slot not in self._slots:
            return
        if error is not None:
            if isinstance(error, CloseConnection):
                self._log_refusal(str(error))
            else:
                logger.warning(
                    "closing connection from %s:%d: %s",
                    self.peer_host,
                    self.peer_port,
                    one_line(str(error)),
                    exc_info=error,
                    extra=event("connection.refused", client=self.peer_host),
                )
            self.close()
            return
        slot.parts = task.result()
        slot.task = None
        while self._slots and self._slots[0].parts is not None:
            self._writer.write(self._slots.popleft().parts or ())
        if slot.closes is not None and slot.closes():
            self._closing = True
            # Nothing takes frames out of the buffer any more.
            self._pause_reading()
            self._writer.flush()
            self._loop.call_later(_CLOSE_DELAY_SECONDS, self.close)
            return
        if not self._slots:
            self._exclusive = False
        self.last_activity = self._loop.time()
        self._pump()

    def _log_refusal(self, reason: str) -> None:
        """Log why the connection is closed, the same reason for a host at most once a second."""
        shown = _refusals.refusal(self.peer_host, reason)
        if shown is not None:
            logger.warning(
                "closing connection from %s:%d: %s",
                self.peer_host,
                self.peer_port,
                one_line(shown),
                extra=event("connection.refused", client=self.peer_host),
            )

    def _regulate_reading(self) -> None:
        if self._transport is None or self._closing:
            return
        if self._held or (self._frames.full and self._blocked()):
            self._pause_reading()
        elif self._reading_paused:
            self._reading_paused = False
            self._transport.resume_reading()

    def _pause_reading(self) -> None:
        if not self._reading_paused and self._transport is not None and not self._transport.is_closing():
            self._reading_paused = True
            self._transport.pause_reading()


class _Slot:
    """A place in the order of responses."""

    __slots__ = ("closes", "parts", "task")

    def __init__(self, parts: Parts | None, closes: Callable[[], bool] | None = None) -> None:
        self.parts = parts
        self.closes = closes
        self.task: asyncio.Future[Parts] | None = None


def java_address(host: str) -> str:
    """Return an address as Java prints it: IPv6 in eight groups, without the interface."""
    if ":" not in host:
        return host
    import ipaddress

    address = ipaddress.IPv6Address(host.partition("%")[0])
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return ":".join(format(int(group, 16), "x") for group in address.exploded.split(":"))


def _cancel(tasks: Iterable[asyncio.Future[Parts]]) -> None:
    for task in tasks:
        task.cancel()


def _retrieve_exception(task: asyncio.Future[Parts]) -> None:
    """Keep asyncio from logging the exception of a request whose client is gone."""
    if not task.cancelled():
        task.exception()
