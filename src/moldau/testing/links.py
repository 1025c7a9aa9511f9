"""Network faults without root: cut and heal the connections that a node opens to other nodes.

Every connection between nodes is opened through the node's `open_connection`, so cutting it on the side
that opened it cuts it for both. While a link is cut, its connections behave like TCP over a broken cable:
sent data stays in buffers, in order; no data arrives; neither side notices that the other has closed; new
connections hang until their callers time out. After healing, the connections continue without loss.

A cut has two directions: `outgoing` from this node to the others, `incoming` from them to it. If only one
is cut, the connection still carries the other. Nodes are identified by their ports: all of them run on one
machine.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Collection
from typing import Any, cast

#: A cut connection buffers this much before it asks the node to pause writing.
_HIGH_WATER_BYTES = 65_536


class Links:
    """The connections that one node opens. `open` is the node's `open_connection`."""

    def __init__(self, outgoing: Collection[int] = (), incoming: Collection[int] = ()) -> None:
        self._outgoing = frozenset(outgoing)
        self._incoming = frozenset(incoming)
        self._changed = asyncio.Event()
        self._connections: dict[_Connection, None] = {}

    async def open(
        self, factory: Callable[[], asyncio.BufferedProtocol], host: str, port: int
    ) -> tuple[asyncio.Transport, asyncio.BufferedProtocol]:
        """Open a connection as `loop.create_connection` does; wait while the link is cut."""
        while port in self._outgoing or port in self._incoming:
            await self._changed.wait()
        connection = _Connection(factory(), self, port)
        await asyncio.get_running_loop().create_connection(lambda: connection, host, port)
        return connection, connection.node_side

    def cut(self, outgoing: Collection[int], incoming: Collection[int]) -> None:
        """Cut the links to exactly these ports and heal all others."""
        self._outgoing, self._incoming = frozenset(outgoing), frozenset(incoming)
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()
        for connection in list(self._connections):
            self._apply(connection)

    def opened(self, connection: _Connection) -> None:
        self._connections[connection] = None
        self._apply(connection)

    def closed(self, connection: _Connection) -> None:
        self._connections.pop(connection, None)

    def _apply(self, connection: _Connection) -> None:
        connection.hold(connection.port in self._outgoing, connection.port in self._incoming)


class _Connection(asyncio.BufferedProtocol, asyncio.Transport):
    """A proxy between socket and node: the socket's protocol and the node's transport."""

    def __init__(self, node_side: asyncio.BufferedProtocol, links: Links, port: int) -> None:
        super().__init__()
        self.node_side = node_side
        self.port = port
        self._links = links
        self._socket: asyncio.Transport | None = None
        self._holds_outgoing = self._holds_incoming = False
        self._held: list[bytes] = []
        self._held_bytes = 0
        self._socket_is_full = self._node_paused = False
        self._reading_paused = False
        #: The socket is closed (uvloop's transport does not report that as closing).
        self._lost = False
        self._closed_by_node = False
        #: The node has closed its side of a cut link; the other node is notified after healing.
        self._abandoned = False
        #: The reason of a connection loss that the node is not notified of yet, in a list of at most one.
        self._deferred_loss: list[Exception | None] = []

    def hold(self, outgoing: bool, incoming: bool) -> None:
        self._holds_outgoing, self._holds_incoming = outgoing, incoming
        # uvloop raises it if the socket has just failed; its `connection_lost` follows.
        with contextlib.suppress(RuntimeError):
            if not outgoing:
                self._flush()
            self._update_reading()
        if not incoming and self._deferred_loss:
            self._notify_lost(self._deferred_loss.pop())

    def _update_reading(self) -> None:
        if self._socket is not None and not self._lost:
            pause = self._holds_incoming or self._abandoned or self._reading_paused
            self._socket.pause_reading() if pause else self._socket.resume_reading()

    def _flush(self) -> None:
        held, self._held, self._held_bytes = self._held, [], 0
        if self._socket is None or self._lost:
            return
        if self._abandoned:
            self._socket.abort()
        elif held:
            self._socket.writelines(held)
        self._update_flow_control()

    # The socket's protocol.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._socket = cast(asyncio.Transport, transport)
        self.node_side.connection_made(self)
        self._links.opened(self)

    def get_buffer(self, sizehint: int) -> Any:
        return self.node_side.get_buffer(sizehint)

    def buffer_updated(self, nbytes: int) -> None:
        self.node_side.buffer_updated(nbytes)

    def eof_received(self) -> bool | None:
        return self.node_side.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost = True
        if self._holds_incoming and not self._closed_by_node:
            self._deferred_loss = [exc]
        else:
            self._notify_lost(exc)

    def pause_writing(self) -> None:
        self._socket_is_full = True
        self._update_flow_control()

    def resume_writing(self) -> None:
        self._socket_is_full = False
        self._update_flow_control()

    def _notify_lost(self, reason: Exception | None) -> None:
        self._links.closed(self)
        if not self._abandoned:
            self.node_side.connection_lost(reason)

    def _update_flow_control(self) -> None:
        paused = self._socket_is_full or self._held_bytes > _HIGH_WATER_BYTES
        if paused != self._node_paused:
            self._node_paused = paused
            self.node_side.pause_writing() if paused else self.node_side.resume_writing()

    # The node's transport.

    def write(self, data: bytes | bytearray | memoryview[Any]) -> None:
        self.writelines([data])

    def writelines(self, list_of_data: Any) -> None:
        if self._socket is None or self._closed_by_node or self._lost:
            return
        if not self._holds_outgoing:
            self._socket.writelines(list_of_data)
            return
        # A copy, because the caller may reuse its memory.
        self._held.append(b"".join(list_of_data))
        self._held_bytes += len(self._held[-1])
        self._update_flow_control()

    def pause_reading(self) -> None:
        self._reading_paused = True
        self._update_reading()

    def resume_reading(self) -> None:
        self._reading_paused = False
        self._update_reading()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        if self._socket is not None:
            self._socket.set_write_buffer_limits(high, low)

    def get_write_buffer_size(self) -> int:
        return self._held_bytes + (0 if self._socket is None else self._socket.get_write_buffer_size())

    def close(self) -> None:
        self.abort()

    def abort(self) -> None:
        if self._socket is None or self._closed_by_node:
            return
        self._closed_by_node = True
        if self._deferred_loss:
            self._links.closed(self)
        elif not self._holds_outgoing:
            self._socket.abort()
            return
        else:
            self._socket.pause_reading()
        self._abandoned = True
        self._held, self._held_bytes = [], 0
        asyncio.get_running_loop().call_soon(self.node_side.connection_lost, None)

    def is_closing(self) -> bool:
        return self._closed_by_node or self._lost or self._socket is None or self._socket.is_closing()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return default if self._socket is None else self._socket.get_extra_info(name, default)
