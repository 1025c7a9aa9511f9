"""One accepted connection: frames in, answers out in the order of the requests.

How it works. Bytes arrive in a `FrameBuffer`; each complete frame goes to the dispatcher, which answers
at once (a list of parts) or later (an awaitable). Answers leave in the order of their requests.

Invariants:

- Only requests the dispatcher marks as `overlapping` (a produce that waits for replication or a flush)
  let the next frame start before they are answered, and at most `MAX_OVERLAPPING` of them; everything
  else is one at a time, so a client cannot make the node hold more than one large answer for it.
- Nothing is dispatched while the peer does not take what was already answered, while the connection is
  muted by a quota, or once it is closing. Reading pauses when the buffer is full, and TCP does the rest.
- What a peer sent before it went is begun, though nobody hears the answer: whoever commits its offsets,
  leaves its group and hangs up relies on it. A request that waits for something is then given up.
- Small answers to requests that came in one read leave in one write: for many small requests the system
  calls cost as much as everything else.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Protocol

from moldau.network.frames import FrameBuffer, FrameTooLarge

log = logging.getLogger(__name__)

Buffer = bytes | bytearray | memoryview
Parts = Sequence[Buffer]

MAX_OVERLAPPING = 64
WRITE_HIGH_WATER = 256 * 1024
#: Answers up to this size wait for the others of the same read, at most so many of them.
_SMALL_ANSWER = 4 * 1024
_MAX_TOGETHER = 64
#: So many requests are begun for a peer that is gone.
_MAX_LEFT_BEHIND = 16


class Answer:
    """What the dispatcher gives for a frame: parts now, an awaitable of parts, or nothing (acks=0)."""

    __slots__ = ("mute_ms", "overlapping", "parts", "pending")

    def __init__(
        self,
        parts: Parts = (),
        *,
        pending: Awaitable[Parts] | None = None,
        overlapping: bool = False,
        mute_ms: int = 0,
    ) -> None:
        self.parts = parts
        self.pending = pending
        self.overlapping = overlapping
        self.mute_ms = mute_ms


class CloseConnection(Exception):
    """The dispatcher cannot go on with this peer; the message says why."""


class Dispatcher(Protocol):
    def dispatch(self, connection: Connection, frame: memoryview) -> Answer: ...

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
    ) -> None:
        self.listener_name = ""
        self.peer_host = ""
        self.peer_port = 0
        #: Filled from ApiVersions; shown in logs and metrics.
        self.client_software = ("unknown", "unknown")
        self.last_activity = loop.time()
        self.requests = 0
        #: Called when more comes while a request is being answered that others have to wait for.
        self.on_more: Callable[[], None] | None = None
        self._dispatcher = dispatcher
        self._frames = FrameBuffer(max_frame)
        self._loop = loop
        self._on_open = on_open
        self._on_close = on_close
        #: Who does not take what was answered; shared with whoever wants to know how much that is.
        self._stalled = {} if stalled is None else stalled
        self._transport: asyncio.Transport | None = None
        self._slots: deque[_Slot] = deque()
        self._small: list[Buffer] = []
        self._exclusive = False
        self._writing_paused = False
        self._reading_paused = False
        self._held = False
        self._muted_until = 0.0
        self._dispatching = False
        self._closing = False

    # The transport calls these.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]
        peer = transport.get_extra_info("peername") or ("", 0)
        self.peer_host, self.peer_port = str(peer[0]), int(peer[1]) if len(peer) > 1 else 0
        self._transport.set_write_buffer_limits(high=WRITE_HIGH_WATER)  # type: ignore[union-attr]
        if not self._on_open(self):
            self.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        begun = [slot.task for slot in self._slots if slot.task is not None]
        if not self._closing:
            begun += self._begin_what_is_left()
        self._closing = True
        self._slots.clear()
        # Not at once: what has only just been dispatched has not taken its first step yet.
        self._loop.call_soon(_cancel, begun)
        self._stalled.pop(self, None)
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

    # The owner calls these.

    @property
    def idle(self) -> bool:
        return not self._slots

    @property
    def has_more(self) -> bool:
        """Whether the peer has sent something that was not looked at yet."""
        return self._frames.buffered > 0

    @property
    def unsent_bytes(self) -> int:
        return self._transport.get_write_buffer_size() if self._transport is not None else 0

    def hold(self) -> None:
        """Accepted, but nothing is read until `release`: the node is at its connection limit."""
        self._held = True
        self._pause_reading()

    def release(self) -> None:
        self._held = False
        self._pump()

    def keep_frame(self) -> None:
        """The frame being dispatched is used beyond the call: do not reuse its bytes."""
        self._frames.keep()

    def close(self) -> None:
        """Stop taking requests; what is already answered still goes out."""
        self._closing = True
        self._flush()
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        self._closing = True
        if self._transport is not None:
            self._transport.abort()

    # Inside.

    def _blocked(self) -> bool:
        return (
            self._closing
            or self._held
            or self._writing_paused
            or self._exclusive
            or len(self._slots) >= MAX_OVERLAPPING
            or self._loop.time() < self._muted_until
        )

    def _pump(self) -> None:
        """Dispatch what is complete, as far as the rules allow."""
        if self._dispatching:
            return
        self._dispatching = True
        try:
            while not self._blocked():
                frame = self._frames.next_frame()
                if frame is None:
                    break
                self._dispatch(frame)
        except (CloseConnection, FrameTooLarge) as reason:
            log.warning("closing connection from %s:%d: %s", self.peer_host, self.peer_port, reason)
            self.close()
        finally:
            self._dispatching = False
            self._flush()
        self._regulate_reading()

    def _dispatch(self, frame: memoryview) -> None:
        self.requests += 1
        answer = self._dispatcher.dispatch(self, frame)
        if answer.mute_ms:
            self._mute(answer.mute_ms)
        if answer.pending is None:
            if not self._slots:
                self._write(answer.parts)
            else:
                self._slots.append(_Slot(answer.parts))
                # It has to wait for its turn; the next large one must wait for it.
                self._exclusive = sum(map(len, answer.parts)) > WRITE_HIGH_WATER
            return
        slot = _Slot(None)
        self._slots.append(slot)
        self._exclusive = not answer.overlapping
        slot.task = asyncio.ensure_future(answer.pending)
        slot.task.add_done_callback(lambda task: self._finished(slot, task))

    def _begin_what_is_left(self) -> list[asyncio.Future[Parts]]:
        begun: list[asyncio.Future[Parts]] = []
        if self._held or self._writing_paused or self._loop.time() < self._muted_until:
            return begun
        try:
            for _ in range(_MAX_LEFT_BEHIND):
                frame = self._frames.next_frame()
                if frame is None:
                    break
                pending = self._dispatcher.dispatch(self, frame).pending
                if pending is not None:
                    begun.append(asyncio.ensure_future(pending))
        except (CloseConnection, FrameTooLarge) as reason:
            log.info("the last of %s:%d is left out: %s", self.peer_host, self.peer_port, reason)
        for each in begun:
            each.add_done_callback(_forget)
        return begun

    def _finished(self, slot: _Slot, task: asyncio.Future[Parts]) -> None:
        if task.cancelled():
            return
        error = task.exception()
        if slot not in self._slots:
            return
        if error is not None:
            trace = None if isinstance(error, CloseConnection) else error
            log.warning("closing connection from %s: %s", self.peer_host, error, exc_info=trace)
            self.close()
            return
        slot.parts = task.result()
        slot.task = None
        while self._slots and self._slots[0].parts is not None:
            self._write(self._slots.popleft().parts or ())
        if not self._slots:
            self._exclusive = False
        self.last_activity = self._loop.time()
        self._pump()

    def _write(self, parts: Parts) -> None:
        if len(parts) == 1 and self._dispatching and len(parts[0]) <= _SMALL_ANSWER:
            self._small.append(parts[0])
            if len(self._small) >= _MAX_TOGETHER:
                self._flush()
        elif parts:
            self._flush()
            if self._transport is not None and not self._transport.is_closing():
                self._transport.writelines(parts)

    def _flush(self) -> None:
        if self._small:
            together, self._small = self._small, []
            if self._transport is not None and not self._transport.is_closing():
                self._transport.write(together[0] if len(together) == 1 else b"".join(together))

    def _mute(self, milliseconds: int) -> None:
        self._muted_until = max(self._muted_until, self._loop.time() + milliseconds / 1000)
        self._loop.call_at(self._muted_until, self._pump)

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
    """A place in the order of answers."""

    __slots__ = ("parts", "task")

    def __init__(self, parts: Parts | None) -> None:
        self.parts = parts
        self.task: asyncio.Future[Parts] | None = None


def _cancel(tasks: Iterable[asyncio.Future[Parts]]) -> None:
    for task in tasks:
        task.cancel()


def _forget(task: asyncio.Future[Parts]) -> None:
    """Nobody waits for it; why it failed is nobody's concern."""
    if not task.cancelled():
        task.exception()
