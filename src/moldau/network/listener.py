"""Listening sockets. Which of the accepted connections are served is decided by `limits.py`."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Any, Protocol

from moldau.network.connection import Connection, Dispatcher
from moldau.network.limits import ConnectionLimits

#: Name, host (None: all interfaces), port (0: any) and buffer sizes (-1: the system's) to bound sockets.
OpenSockets = Callable[[str, str | None, int, tuple[int, int]], list[socket.socket]]


class ServerTls(Protocol):
    def wrap(
        self, connection: Connection, loop: asyncio.AbstractEventLoop, on_secured: Callable[[], None]
    ) -> asyncio.BufferedProtocol:
        """Return the protocol that decrypts the bytes of the socket for `connection`.

        `on_secured` is called when the handshake is complete.
        """
        ...


class ListenError(Exception):
    """A listener could not be opened; the message says which setting to change."""


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
            dispatcher,
            self._max_frame,
            loop,
            self._opened,
            self._closed,
            self._limits.stalled,
            self._limits.half_open.forget,
        )
        if self._tls is None:
            return connection
        return self._tls.wrap(connection, loop, lambda: self._secured(connection))

    def _opened(self, connection: Connection) -> bool:
        self._connections[connection] = None
        admitted = self._limits.admit(connection, self.name)
        if admitted and (self._logs_in or self._tls is not None):
            self._limits.half_open.opened(connection, connection.last_activity)
        return admitted

    def _secured(self, connection: Connection) -> None:
        if not self._logs_in:
            self._limits.half_open.forget(connection)

    def _closed(self, connection: Connection) -> None:
        self._connections.pop(connection, None)
        self._limits.half_open.forget(connection)
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
