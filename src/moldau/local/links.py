"""Network faults without root: the connections that a node opens to others can be cut, and healed.

Every connection between nodes is opened through the node's `open_connection`, so cutting it on the side that
opened it cuts it for both. While a link is cut its connections behave as TCP does over a broken cable: what
is sent stays in buffers, in the order it was sent, nothing arrives, nobody hears that the other side has
gone, and new connections hang until their callers lose patience. After healing everything goes on; nothing
was lost.

A cut has two directions. `outgoing` is what this node says to the others, `incoming` what they say to it;
with only one of them cut a connection still carries the other. Nodes are known by their ports: all of them
are on one machine.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Collection
from typing import Any, cast

#: What a connection holds back before it asks the node to stop writing.
_HIGH_WATER_BYTES = 65_536


class Links:
    """The connections of one node. `open` is what `Node` wants as `open_connection`."""

    def __init__(self, outgoing: Collection[int] = (), incoming: Collection[int] = ()) -> None:
        self._outgoing = frozenset(outgoing)
        self._incoming = frozenset(incoming)
        self._changed = asyncio.Event()
        self._connections: dict[_Connection, None] = {}

    async def open(
        self, factory: Callable[[], asyncio.BufferedProtocol], host: str, port: int
    ) -> tuple[asyncio.Transport, asyncio.BufferedProtocol]:
        """As `loop.create_connection`; over a cut link it does not come back."""
        while port in self._outgoing or port in self._incoming:
            await self._changed.wait()
        connection = _Connection(factory(), self, port)
        await asyncio.get_running_loop().create_connection(lambda: connection, host, port)
        return connection, connection.node_side

    def cut(self, outgoing: Collection[int], incoming: Collection[int]) -> None:
        """From now on exactly these ports are cut off."""
        self._outgoing, self._incoming = frozenset(outgoing), frozenset(incoming)
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()
        for connection in list(self._connections):
            self._apply(connection)

    def opened(self, connection: _Connection) -> None:
        self._connections[connection] = None
        self._apply(connection)

    def ended(self, connection: _Connection) -> None:
        self._connections.pop(connection, None)

    def _apply(self, connection: _Connection) -> None:
        connection.hold(connection.port in self._outgoing, connection.port in self._incoming)


class _Connection(asyncio.BufferedProtocol, asyncio.Transport):
    """Between a socket and the node: a protocol to the one, a transport to the other."""

    def __init__(self, node_side: asyncio.BufferedProtocol, links: Links, port: int) -> None:
        super().__init__()
        self.node_side = node_side
        self.port = port
        self._links = links
        self._socket: asyncio.Transport | None = None
        self._holds_outgoing = self._holds_incoming = False
        self._held: list[bytes] = []
        self._held_bytes = 0
        self._socket_is_full = self._node_waits = False
        #: The socket is gone (uvloop's does not count as closing then).
        self._over = False
        self._closed_by_node = False
        #: The node has closed its side of a cut link; the other node learns it when the link is whole.
        self._abandoned = False
        #: The end of the connection, with its reason, that the node has not heard yet.
        self._untold_end: list[Exception | None] = []

    def hold(self, outgoing: bool, incoming: bool) -> None:
        self._holds_outgoing, self._holds_incoming = outgoing, incoming
        # uvloop says so when the socket has just failed; the end of the connection is told next.
        with contextlib.suppress(RuntimeError):
            if not outgoing:
                self._let_out()
            if self._socket is not None and not self._over:
                deaf = incoming or self._abandoned
                self._socket.pause_reading() if deaf else self._socket.resume_reading()
        if not incoming and self._untold_end:
            self._tell_end(self._untold_end.pop())

    def _let_out(self) -> None:
        held, self._held, self._held_bytes = self._held, [], 0
        if self._socket is None or self._over:
            return
        if self._abandoned:
            self._socket.abort()
        elif held:
            self._socket.writelines(held)
        self._tell_whether_to_write()

    # As the socket's protocol.

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
        self._over = True
        if self._holds_incoming and not self._closed_by_node:
            self._untold_end = [exc]
        else:
            self._tell_end(exc)

    def pause_writing(self) -> None:
        self._socket_is_full = True
        self._tell_whether_to_write()

    def resume_writing(self) -> None:
        self._socket_is_full = False
        self._tell_whether_to_write()

    def _tell_end(self, reason: Exception | None) -> None:
        self._links.ended(self)
        if not self._abandoned:
            self.node_side.connection_lost(reason)

    def _tell_whether_to_write(self) -> None:
        must_wait = self._socket_is_full or self._held_bytes > _HIGH_WATER_BYTES
        if must_wait != self._node_waits:
            self._node_waits = must_wait
            self.node_side.pause_writing() if must_wait else self.node_side.resume_writing()

    # As the node's transport.

    def write(self, data: bytes | bytearray | memoryview[Any]) -> None:
        self.writelines([data])

    def writelines(self, list_of_data: Any) -> None:
        if self._socket is None or self._closed_by_node or self._over:
            return
        if not self._holds_outgoing:
            self._socket.writelines(list_of_data)
            return
        # A copy: whoever wrote may use the memory again.
        self._held.append(b"".join(list_of_data))
        self._held_bytes += len(self._held[-1])
        self._tell_whether_to_write()

    def close(self) -> None:
        self.abort()

    def abort(self) -> None:
        if self._socket is None or self._closed_by_node:
            return
        self._closed_by_node = True
        if self._untold_end:
            self._links.ended(self)
        elif not self._holds_outgoing:
            self._socket.abort()
            return
        else:
            self._socket.pause_reading()
        self._abandoned = True
        self._held, self._held_bytes = [], 0
        asyncio.get_running_loop().call_soon(self.node_side.connection_lost, None)

    def is_closing(self) -> bool:
        return self._closed_by_node or self._over or self._socket is None or self._socket.is_closing()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return default if self._socket is None else self._socket.get_extra_info(name, default)
