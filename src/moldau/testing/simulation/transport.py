"""One end of a simulated connection, for `Protocol` and `BufferedProtocol`.

Written bytes wait in `_outgoing` until they are sent, in pieces and in order. The receiver reads them at
once unless its reading is paused: then they accumulate until the window is full, and the sender's protocol
is paused (`pause_writing`), as with the kernel's buffers.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from contextvars import Context
from typing import TYPE_CHECKING, Any, NamedTuple
from zlib import crc32

from moldau.testing.simulation.process import Process

if TYPE_CHECKING:
    from moldau.testing.simulation.network import SimulatedNetwork

_WINDOW = 256 * 1024
_HIGH_WATER = 64 * 1024
_REPEAT_SECONDS = 0.02


class Ends(NamedTuple):
    source: str
    source_port: int
    target: str
    target_port: int

    def reversed(self) -> Ends:
        return Ends(self.target, self.target_port, self.source, self.source_port)


class SimulatedTransport(asyncio.Transport):
    def __init__(
        self, network: SimulatedNetwork, ends: Ends, context: Context, process: Process | None
    ) -> None:
        super().__init__({"peername": (ends.target, ends.target_port), "sockname": ends[:2]})
        self.ends = ends
        self.context = context
        self.process = process
        self.peer: SimulatedTransport | None = None
        self._network = network
        self._loop = asyncio.get_running_loop()
        self._protocol: Any = None
        self._outgoing = bytearray()
        #: Bytes in flight to the peer or waiting there, and the arrival time of the last.
        self._unread_by_peer = 0
        self._arrives = 0.0
        #: Pieces in flight to this end, in order.
        self._under_way: deque[bytes | None] = deque()
        self._incoming = bytearray()
        self._limits = (_HIGH_WATER, _HIGH_WATER // 4)
        self._reading = True
        self._writing_paused = False
        self._closing = False
        self._ended = False
        self._peer_ended = False
        self._lost = False

    @property
    def way(self) -> tuple[str, str]:
        return self.ends.source, self.ends.target

    @property
    def lost(self) -> bool:
        return self._lost

    def attach(self, factory: Callable[[], asyncio.BaseProtocol]) -> asyncio.BaseProtocol:
        """Establish the connection; return the protocol, for which bytes may have arrived already."""
        self._protocol = protocol = factory()
        protocol.connection_made(self)
        self._deliver()
        return protocol

    # For protocols.

    def write(self, data: Any) -> None:
        if self._closing or self._lost:
            return
        self._outgoing += data
        self.transmit()

    def writelines(self, list_of_data: Iterable[Any]) -> None:
        self.write(b"".join(list_of_data))

    def close(self) -> None:
        """Close after all written bytes are sent."""
        if not self._closing:
            self._closing = True
            self._reading = False
            self.transmit()

    def abort(self) -> None:
        peer = self.peer
        self.lose(None)
        if peer is not None:
            self._loop.call_later(
                self._network.delay(*self.way),
                peer.lose,
                ConnectionResetError(104, "reset"),
                context=peer.context,
            )

    def is_closing(self) -> bool:
        return self._closing or self._lost

    def pause_reading(self) -> None:
        self._reading = False

    def resume_reading(self) -> None:
        if not self._closing:
            self._reading = True
            self._loop.call_soon(self._deliver, context=self.context)

    def is_reading(self) -> bool:
        return self._reading

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        high = _HIGH_WATER if high is None else high
        self._limits = (high, high // 4 if low is None else low)

    def get_write_buffer_size(self) -> int:
        return len(self._outgoing)

    def get_protocol(self) -> asyncio.BaseProtocol:
        return self._protocol  # type: ignore[no-any-return]

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._protocol = protocol

    # Sending and receiving.

    def transmit(self) -> None:
        """Send as much as the window and the link allow."""
        peer, network = self.peer, self._network
        while (
            self._outgoing
            and self._unread_by_peer < _WINDOW
            and peer is not None
            and not network.is_cut(self.ends.source, self.ends.target)
        ):
            size = network.piece(min(len(self._outgoing), _WINDOW - self._unread_by_peer))
            piece = bytes(self._outgoing[:size])
            del self._outgoing[:size]
            self._unread_by_peer += size
            self._send(peer, piece)
        if self._closing and not self._outgoing and not self._ended:
            self._ended = True
            if peer is not None:
                self._send(peer, None)
            self._loop.call_soon(self.lose, None, context=self.context)
        self._regulate()

    def _send(self, peer: SimulatedTransport, piece: bytes | None) -> None:
        """Send a piece; None is the end of the stream."""
        peer._under_way.append(piece)
        self._arrives = max(self._arrives, self._loop.time() + self._network.delay(*self.way))
        self._loop.call_at(self._arrives, peer._arrive, context=peer.context)

    def _arrive(self) -> None:
        """Receive the next piece; if the link was cut meanwhile, retransmit it until it arrives."""
        if self._network.is_cut(self.ends.target, self.ends.source):
            self._loop.call_later(_REPEAT_SECONDS, self._arrive, context=self.context)
            return
        piece = self._under_way.popleft()
        if piece is None:
            self._peer_ended = True
        else:
            self._network.trace.note("bytes", *self.ends.reversed(), len(piece), f"{crc32(piece):08x}")
            self._incoming += piece
        self._deliver()

    def _deliver(self) -> None:
        """Pass received bytes to the protocol while it reads."""
        while self._incoming and self._reading and not self._lost and self._protocol is not None:
            taken = self._hand_over()
            del self._incoming[:taken]
            if self.peer is not None:
                self.peer._was_read(taken)
        if self._peer_ended and not self._incoming and not self._lost and self._protocol is not None:
            self._peer_ended = False
            self._protocol.eof_received()
            self.close()

    def _hand_over(self) -> int:
        protocol, incoming = self._protocol, self._incoming
        if not isinstance(protocol, asyncio.BufferedProtocol):
            data = bytes(incoming)
            protocol.data_received(data)
            return len(data)
        buffer = protocol.get_buffer(len(incoming))
        if not len(buffer):  # type: ignore[arg-type]
            raise RuntimeError("get_buffer() returned an empty buffer")
        size = min(len(buffer), len(incoming))  # type: ignore[arg-type]
        buffer[:size] = incoming[:size]  # type: ignore[index]
        protocol.buffer_updated(size)
        return size

    def _was_read(self, size: int) -> None:
        self._unread_by_peer -= size
        if self._outgoing:
            self._loop.call_soon(self.transmit, context=self.context)

    def _regulate(self) -> None:
        if self._protocol is None or self._lost:
            return
        high, low = self._limits
        if not self._writing_paused and len(self._outgoing) > high:
            self._writing_paused = True
            self._protocol.pause_writing()
        elif self._writing_paused and len(self._outgoing) <= low:
            self._writing_paused = False
            self._protocol.resume_writing()

    def lose(self, error: Exception | None) -> None:
        """End the connection on this side."""
        if self._lost:
            return
        self._lost = self._closing = True
        self._network.forget(self)
        self._outgoing.clear()
        if self._protocol is not None:
            self._loop.call_soon(self._protocol.connection_lost, error, context=self.context)
