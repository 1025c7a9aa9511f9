"""Several nodes in the event loop of the test, on real sockets and disks, so that a test can inspect them."""

from __future__ import annotations

import asyncio
import errno
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from moldau.base.clock import SystemClock
from moldau.base.pool import ThreadPool
from moldau.config.broker.config import BrokerConfig
from moldau.network.client import NodeConnection
from moldau.server.node import Node
from moldau.server.startup.format import FormatOptions, format_storage
from moldau.storage.cleaner.runner import InlineRunner
from moldau.storage.disk.disk import PosixDisk
from tests.harness.apache.node import free_port

CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qg"
BOTH, BROKER, CONTROLLER = "broker,controller", "broker", "controller"


class Nodes:
    """A cluster of nodes by id with their roles, and a static quorum of its controllers."""

    def __init__(self, folder: Path, roles: Mapping[int, str], config: Mapping[str, str]) -> None:
        self.running: dict[int, Node] = {}
        #: Configs of single nodes.
        self.changes: dict[int, dict[str, str]] = {}
        self._folder = folder
        self._roles = roles
        self._config = config
        self._ports = {node_id: (free_port(), free_port()) for node_id in roles}
        self._pools: list[ThreadPool] = []
        #: Nodes that reach no other node; their open connections are kept in order to abort them.
        self._cut: set[int] = set()
        self._opened: dict[int, list[asyncio.BaseTransport]] = {}

    def __getitem__(self, node_id: int) -> Node:
        return self.running[node_id]

    def properties(self, node_id: int) -> dict[str, str]:
        roles, (port, controller_port) = self._roles[node_id], self._ports[node_id]
        listeners = []
        if "broker" in roles:
            listeners.append(f"PLAINTEXT://127.0.0.1:{port}")
        if "controller" in roles:
            listeners.append(f"CONTROLLER://127.0.0.1:{controller_port}")
        voters = [each for each, role in self._roles.items() if "controller" in role]
        return {
            "process.roles": roles,
            "node.id": str(node_id),
            "listeners": ",".join(listeners),
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": ",".join(f"{n}@127.0.0.1:{self._ports[n][1]}" for n in voters),
            "log.dirs": str(self._folder / f"node-{node_id}"),
            **self._config,
            **self.changes.get(node_id, {}),
        }

    def make(
        self, node_id: int, changes: Mapping[str, str] | None = None, cluster_id: str = CLUSTER_ID
    ) -> Node:
        """Make and format a node without starting it."""
        settings = BrokerConfig.from_properties({**self.properties(node_id), **(changes or {})})
        options = FormatOptions(cluster_id=cluster_id, ignore_formatted=True)
        format_storage(PosixDisk(), SystemClock(), random.SystemRandom(), settings, options)
        pool = ThreadPool(2)
        self._pools.append(pool)
        return Node(
            settings,
            clock=SystemClock(),
            randomness=random.SystemRandom(),
            disk=PosixDisk(),
            pool=pool,
            cleaner=InlineRunner(PosixDisk()),
            on_fatal=lambda: None,
            open_connection=lambda protocol, host, port: self._open(node_id, protocol, host, port),
        )

    # The network.

    async def _open(
        self, node_id: int, protocol: Callable[[], asyncio.BufferedProtocol], host: str, port: int
    ) -> object:
        if node_id in self._cut:
            raise OSError(errno.EHOSTUNREACH, "no route to host")
        transport, connected = await asyncio.get_running_loop().create_connection(protocol, host, port)
        self._opened.setdefault(node_id, []).append(transport)
        return transport, connected

    def cut(self, node_id: int) -> None:
        """Cut the outgoing links of a node; others can still connect to it."""
        self._cut.add(node_id)
        for transport in self._opened.pop(node_id, ()):
            transport.close()

    def heal(self, node_id: int) -> None:
        self._cut.discard(node_id)

    async def start(self, *node_ids: int) -> None:
        """Start nodes concurrently, as a quorum requires."""
        nodes = {node_id: self.make(node_id) for node_id in node_ids}
        self.running |= nodes
        await asyncio.gather(*(node.start() for node in nodes.values()))

    async def stop(self, node_id: int) -> None:
        await self.running.pop(node_id).stop()

    async def close(self) -> None:
        await asyncio.gather(*(node.stop() for node in self.running.values()))
        for pool in self._pools:
            pool.close()

    @asynccontextmanager
    async def connected(self, node_id: int, listener: str = "PLAINTEXT") -> AsyncIterator[NodeConnection]:
        connection = await NodeConnection.connect("127.0.0.1", self[node_id].ports[listener])
        try:
            yield connection
        finally:
            connection.close()

    def unfenced(self, seen_by: int) -> list[int]:
        return sorted(each.id for each in self[seen_by].image.cluster.brokers.values() if not each.fenced)


@asynccontextmanager
async def running_nodes(
    folder: Path, roles: Mapping[int, str], config: Mapping[str, str] | None = None
) -> AsyncIterator[Nodes]:
    nodes = Nodes(folder, roles, config or {})
    try:
        await nodes.start(*roles)
        yield nodes
    finally:
        await nodes.close()


async def until(condition: Callable[[], object], timeout_seconds: float = 60.0) -> None:
    async with asyncio.timeout(timeout_seconds):
        while not condition():
            await asyncio.sleep(0.005)


def run(main: Callable[[], Awaitable[None]], timeout_seconds: float = 150.0) -> None:
    asyncio.run(asyncio.wait_for(main(), timeout_seconds))
