"""A network in memory: hosts by name, ports, and connections as ordered byte streams with latency.

Each direction of a link between two hosts can be cut: sent data waits, as TCP would retransmit it, until
the link is healed or the connection is reset. A host without power does not respond: new connections hang
and established ones are reset some time later; connections are refused only after it is on again. A process
that exits or is killed closes its connections at once.
"""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Callable
from contextvars import copy_context
from random import Random
from typing import Any

from moldau.testing.simulation.faults import failure
from moldau.testing.simulation.process import Process, process_of
from moldau.testing.simulation.trace import Trace
from moldau.testing.simulation.transport import Ends, SimulatedTransport

#: The host of callers without a process.
OUTSIDE = "client"
_FIRST_FREE_PORT = 40_000
_RESET_AFTER_SECONDS = 2.0

ProtocolFactory = Callable[[], asyncio.BaseProtocol]


class SimulatedSocket:
    """A bound port; connections wait until it is served."""

    def __init__(self, network: SimulatedNetwork, host: str, port: int) -> None:
        self.address = (host, port)
        self.process = process_of()
        self.factory: ProtocolFactory | None = None
        self.context = copy_context()
        self.serving = asyncio.Event()
        self._network = network

    def getsockname(self) -> tuple[str, int]:
        return self.address

    def close(self) -> None:
        self._network.unbind(self)


class SimulatedServer:
    """The result of `create_server`."""

    def __init__(self, sock: SimulatedSocket) -> None:
        self._socket = sock

    def close(self) -> None:
        self._socket.close()

    async def wait_closed(self) -> None:
        return None


class SimulatedNetwork:
    """`latency_ms` is the longest latency between two hosts, unless `slow` sets a longer one."""

    def __init__(self, random: Random, trace: Trace | None = None, *, latency_ms: float = 2.0) -> None:
        self.latency_ms = latency_ms
        self.trace = trace or Trace()
        self._random = random
        self._ports: dict[tuple[str, int], SimulatedSocket] = {}
        self._hosts: dict[str, None] = {OUTSIDE: None, "localhost": None, "127.0.0.1": None}
        self._cut: set[tuple[str, str]] = set()
        self._slow: dict[tuple[str, str], float] = {}
        #: Hosts without power.
        self._dark: set[str] = set()
        self._open: dict[SimulatedTransport, None] = {}
        self._next_port = _FIRST_FREE_PORT

    # Faults.

    def cut(self, source: str, target: str, *, both: bool = True) -> None:
        """Cut the link between two hosts, in one or both directions."""
        self._cut.add((source, target))
        if both:
            self._cut.add((target, source))

    def slow(self, source: str, target: str, latency_ms: float) -> None:
        """Increase the latency of one direction of a link until `heal`."""
        self._slow[source, target] = latency_ms

    def heal(self, source: str | None = None, target: str | None = None) -> None:
        """Heal the link between two hosts, or all links."""
        both = ((source, target), (target, source))
        self._cut = {link for link in self._cut if source is not None and link not in both}
        self._slow = {link: ms for link, ms in self._slow.items() if source is not None and link not in both}
        for transport in list(self._open):
            transport.transmit()

    def is_cut(self, source: str, target: str) -> bool:
        return (source, target) in self._cut or source in self._dark or target in self._dark

    def reset(self, one: str, other: str) -> None:
        """Reset the connections between two hosts."""
        for transport in list(self._open):
            if transport.way in ((one, other), (other, one)):
                transport.lose(failure(errno.ECONNRESET, ""))

    def leave(self, process: Process, *, silently: bool) -> None:
        """Close the connections of a dead process; `silently` if its host lost power."""
        for sock in [each for each in self._ports.values() if each.process is process]:
            self.unbind(sock)
        if silently:
            self._dark.add(process.host)
        loop = asyncio.get_running_loop()
        for transport in [each for each in self._open if each.process is process]:
            self.forget(transport)
            wait = self._random.random() * _RESET_AFTER_SECONDS if silently else self.delay(*transport.way)
            peer = transport.peer
            if peer is not None:
                error = failure(errno.ECONNRESET, "")
                loop.call_later(wait, peer.lose, error, context=peer.context)

    # For the loop and the listeners.

    def add_host(self, name: str) -> None:
        self._hosts[name] = None

    def bind(self, name: str, host: str | None, port: int, buffers: tuple[int, int]) -> list[Any]:
        """Return the sockets for a `Listener`."""
        if port == 0:
            port, self._next_port = self._next_port, self._next_port + 1
        address = (self._local(host), port)
        self._dark.discard(address[0])
        if address in self._ports:
            raise failure(errno.EADDRINUSE, f"{host}:{port}")
        sock = self._ports[address] = SimulatedSocket(self, *address)
        return [sock]

    def unbind(self, sock: SimulatedSocket) -> None:
        if self._ports.get(sock.address) is sock:
            del self._ports[sock.address]
        sock.serving.set()

    def serve(self, sock: SimulatedSocket, factory: ProtocolFactory) -> SimulatedServer:
        sock.factory, sock.context = factory, copy_context()
        sock.serving.set()
        return SimulatedServer(sock)

    async def connect(
        self, factory: ProtocolFactory, host: str, port: int
    ) -> tuple[SimulatedTransport, asyncio.BaseProtocol]:
        source, target = self._local(None), self._local(host)
        if host not in self._hosts:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        await self._way(source, target)
        sock = self._ports.get((target, port))
        if sock is not None:
            await sock.serving.wait()
        if sock is None or sock.factory is None or self._ports.get(sock.address) is not sock:
            raise ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused")
        self._next_port += 1
        ends = Ends(source, self._next_port, target, port)
        theirs = SimulatedTransport(self, ends.reversed(), sock.context, sock.process)
        ours = SimulatedTransport(self, ends, copy_context(), process_of())
        ours.peer, theirs.peer = theirs, ours
        self._open[theirs] = self._open[ours] = None
        self.trace.note("connect", *ends)
        theirs.context.run(theirs.attach, sock.factory)
        await self._way(target, source)
        if ours.lost:
            raise ConnectionResetError(errno.ECONNRESET, "Connection reset by peer")
        return ours, ours.attach(factory)

    async def _way(self, source: str, target: str) -> None:
        """Return the latency of a small packet; infinite while the link is cut."""
        await asyncio.sleep(self.delay(source, target))
        while self.is_cut(source, target):
            await asyncio.sleep(self.latency_ms / 100)

    def _local(self, host: str | None) -> str:
        process = process_of()
        if host in (None, "", "localhost", "127.0.0.1", "0.0.0.0"):
            return process.host if process is not None else OUTSIDE
        return str(host)

    # For transports.

    def delay(self, source: str, target: str) -> float:
        return self._random.random() * self._slow.get((source, target), self.latency_ms) / 1000

    def piece(self, size: int) -> int:
        """Return how many bytes are delivered together."""
        return size if self._random.random() < 0.7 else self._random.randint(1, size)

    def forget(self, transport: SimulatedTransport) -> None:
        self._open.pop(transport, None)
