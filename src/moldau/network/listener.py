"""Listening sockets and the limits on what they accept.

A `ConnectionLimits` is shared by all listeners of a node. Over `max.connections.per.ip` a new connection
is closed at once, as in Kafka; over `max.connections` it is accepted but not read until another one closes
(Kafka leaves it in the accept queue, which looks the same to a client).
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from moldau.network.connection import Connection, Dispatcher
from moldau.network.half_open import HalfOpenConnections

logger = logging.getLogger(__name__)

#: Name, host (None: all interfaces), port (0: any) and buffer sizes (-1: the system's) to bound sockets.
OpenSockets = Callable[[str, str | None, int, tuple[int, int]], list[socket.socket]]


class ServerTls(Protocol):
    def wrap(self, connection: Connection, loop: asyncio.AbstractEventLoop) -> asyncio.BufferedProtocol:
        """Return the protocol that decrypts the bytes of the socket for `connection`."""
        ...


class ListenError(Exception):
    """A listener could not be opened; the message says which setting to change."""


@dataclass(slots=True)
class ConnectionLimits:
    max_connections: int = 2**31 - 1
    max_per_ip: int = 2**31 - 1
    per_ip_overrides: Mapping[str, int] = field(default_factory=dict)
    max_idle_ms: int = 600_000
    #: In order of arrival, as all tables here: iteration must be deterministic for the simulation.
    open: dict[Connection, None] = field(default_factory=dict)
    per_ip: Counter[str] = field(default_factory=Counter)
    waiting: deque[Connection] = field(default_factory=deque)
    #: Connections whose client does not read its responses.
    stalled: dict[Connection, None] = field(default_factory=dict)
    half_open: HalfOpenConnections = field(default_factory=HalfOpenConnections)

    def admit(self, connection: Connection) -> bool:
        host = connection.peer_host
        if self.per_ip[host] >= self.per_ip_overrides.get(host, self.max_per_ip):
            logger.warning("too many connections from %s (max.connections.per.ip), closing the newest", host)
            return False
        self.per_ip[host] += 1
        self.open[connection] = None
        if len(self.open) > self.max_connections:
            logger.warning(
                "max.connections=%d reached, the connection from %s waits", self.max_connections, host
            )
            connection.hold()
            self.waiting.append(connection)
        return True

    def forget(self, connection: Connection) -> None:
        if connection not in self.open:
            return
        del self.open[connection]
        self.per_ip[connection.peer_host] -= 1
        if not self.per_ip[connection.peer_host]:
            del self.per_ip[connection.peer_host]
        if connection in self.waiting:
            self.waiting.remove(connection)
        self.release_waiting()

    def release_waiting(self) -> None:
        """Release waiting connections up to `max.connections`, which may have been raised."""
        while self.waiting and len(self.open) - len(self.waiting) < self.max_connections:
            self.waiting.popleft().release()

    def unsent_bytes(self) -> int:
        """Return the size of responses buffered for clients that do not read them."""
        return sum(connection.unsent_bytes for connection in self.stalled)

    def close_idle(self, now: float) -> None:
        self.half_open.expire(now)
        if self.max_idle_ms < 0:
            return
        limit = now - self.max_idle_ms / 1000
        for connection in [c for c in self.open if c.last_activity < limit and c.idle]:
            logger.info("closing idle connection from %s (connections.max.idle.ms)", connection.peer_host)
            # A client that does not read would delay a clean close for ever.
            if connection.unsent_bytes:
                connection.abort()
            else:
                connection.close()


class Listener:
    """One entry of `listeners`: opens its sockets and creates a `Connection` for each client."""

    def __init__(
        self,
        name: str,
        limits: ConnectionLimits,
        *,
        max_frame: int,
        backlog: int = 50,
        send_buffer_bytes: int = -1,
        receive_buffer_bytes: int = -1,
        open_sockets: OpenSockets | None = None,
        tls: ServerTls | None = None,
        logs_in: bool = False,
    ) -> None:
        """`logs_in`: clients log in before anything else."""
        self.name = name
        self.host = ""
        self.port = -1
        self._limits = limits
        self._max_frame = max_frame
        self._backlog = backlog
        self._buffers = (send_buffer_bytes, receive_buffer_bytes)
        self._open_sockets = open_sockets or bound_sockets
        self._tls = tls
        self._logs_in = logs_in
        self._sockets: list[socket.socket] = []
        self._servers: list[asyncio.Server] = []
        self._connections: dict[Connection, None] = {}

    def bind(self, host: str | None, port: int) -> int:
        """Bind the port (0: any free port) and return it; clients wait until `accept`."""
        self._sockets = self._open_sockets(self.name, host, port, self._buffers)
        self.port = self._sockets[0].getsockname()[1]
        self.host = host or ""
        return self.port

    async def accept(self, dispatcher: Dispatcher) -> None:
        """Serve the connections of the bound port."""
        loop = asyncio.get_running_loop()
        for sock in self._sockets:
            server = await loop.create_server(
                lambda: self._connection(loop, dispatcher), sock=sock, backlog=self._backlog
            )
            self._servers.append(server)

    def stop_accepting(self) -> None:
        for server in self._servers:
            server.close()
        for sock in self._sockets:
            sock.close()

    async def close(self, grace_seconds: float = 2.0) -> None:
        """Close all connections; ready responses are still sent within `grace_seconds`."""
        self.stop_accepting()
        for connection in list(self._connections):
            connection.close()
        deadline = asyncio.get_running_loop().time() + grace_seconds
        while self._connections and asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(0.005)
        for connection in list(self._connections):
            connection.abort()

    def _connection(
        self, loop: asyncio.AbstractEventLoop, dispatcher: Dispatcher
    ) -> asyncio.BufferedProtocol:
        connection = Connection(
            dispatcher, self._max_frame, loop, self._opened, self._closed, self._limits.stalled
        )
        return connection if self._tls is None else self._tls.wrap(connection, loop)

    def _opened(self, connection: Connection) -> bool:
        self._connections[connection] = None
        admitted = self._limits.admit(connection)
        if admitted and self._logs_in:
            self._limits.half_open.opened(connection, connection.last_activity)
        return admitted

    def _closed(self, connection: Connection) -> None:
        self._connections.pop(connection, None)
        self._limits.half_open.closed(connection)
        self._limits.forget(connection)


def bound_sockets(name: str, host: str | None, port: int, buffers: tuple[int, int]) -> list[socket.socket]:
    """Return a socket for every address of the host, all on one port."""
    sockets: list[socket.socket] = []
    for family, address in _addresses(host, port):
        if sockets and port == 0:
            address = (address[0], sockets[0].getsockname()[1], *address[2:])
        sockets.append(_bound_socket(name, family, address, buffers))
    return sockets


def _bound_socket(
    name: str, family: socket.AddressFamily, address: Any, buffers: tuple[int, int]
) -> socket.socket:
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        for option, size in zip((socket.SO_SNDBUF, socket.SO_RCVBUF), buffers, strict=True):
            if size > 0:
                sock.setsockopt(socket.SOL_SOCKET, option, size)
        sock.bind(address)
        sock.setblocking(False)
    except OSError as error:
        sock.close()
        raise ListenError(
            f"listener {name} cannot use {address[0]}:{address[1]}: {error.strerror}. "
            "Is another broker running there? Change `listeners`, or stop the other process."
        ) from error
    return sock


def _addresses(host: str | None, port: int) -> list[tuple[socket.AddressFamily, Any]]:
    """Return all addresses of the host, or all interfaces (IPv6 if the machine has it)."""
    try:
        found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except socket.gaierror as error:
        raise ListenError(
            f"`listeners` names the host {host!r}, which cannot be resolved: {error}"
        ) from error
    result: list[tuple[socket.AddressFamily, Any]] = []
    for family, _, _, _, address in found:
        usable = family == socket.AF_INET or (family == socket.AF_INET6 and _has_ipv6())
        if usable and (family, address) not in result:
            result.append((family, address))
    if not result:
        raise ListenError(f"`listeners` names the host {host!r}, which has no usable address")
    return result


def _has_ipv6() -> bool:
    if not socket.has_ipv6:
        return False
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True
