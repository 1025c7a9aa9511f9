"""Controllers in the event loop of the test, on real sockets and disks: a quorum with dynamic membership."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from moldau.base.clock import Clock, SystemClock
from moldau.base.ids import DirectoryId, format_uuid
from moldau.base.pool import ThreadPool
from moldau.config.broker.config import BrokerConfig
from moldau.controller.configs.quotas import alter_client_quotas
from moldau.controller.state import DecisionContext
from moldau.protocol.apis import APIS
from moldau.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    EntityData,
    OpData,
    RequestEntryData,
)
from moldau.server.node import Node
from moldau.server.startup.format import FormatOptions, format_storage
from moldau.storage.cleaner.runner import InlineRunner
from moldau.storage.disk.disk import Disk, PosixDisk
from tests.harness.apache.node import free_port
from tests.harness.nodes.nodes import CLUSTER_ID, CONTROLLER, Nodes, until
from tests.unit.metadata.builders import uid


class QuorumNodes(Nodes):
    """`initial` are the first voters of a dynamic quorum; without them the quorum is static."""

    def __init__(self, folder: Path, ids: list[int], config: Mapping[str, str], initial: list[int]) -> None:
        super().__init__(folder, dict.fromkeys(ids, CONTROLLER), config)
        self._initial = initial
        self.disks: dict[int, Disk] = {}
        self.clocks: dict[int, Clock] = {}
        self.failed: list[int] = []

    def properties(self, node_id: int) -> dict[str, str]:
        properties = super().properties(node_id)
        if self._initial:
            servers = ",".join(f"127.0.0.1:{self._ports[each][1]}" for each in self._initial)
            properties["controller.quorum.bootstrap.servers"] = servers
            del properties["controller.quorum.voters"]
        return properties | self._config

    def move(self, node_id: int) -> None:
        """Give the node new ports for its next start."""
        self._ports[node_id] = (free_port(), free_port())

    def log_folder(self, node_id: int) -> Path:
        return self._folder / f"node-{node_id}" / "__cluster_metadata-0"

    def directory_id(self, node_id: int) -> DirectoryId:
        return self.running[node_id].metadata.settings.directory_id

    def make(
        self, node_id: int, changes: Mapping[str, str] | None = None, cluster_id: str = CLUSTER_ID
    ) -> Node:
        settings = BrokerConfig.from_properties({**self.properties(node_id), **(changes or {})})
        options = self._format_options(node_id, cluster_id)
        format_storage(PosixDisk(), SystemClock(), random.Random(node_id), settings, options)
        disk = self.disks.get(node_id) or PosixDisk()
        pool = ThreadPool(2)
        self._pools.append(pool)
        return Node(
            settings,
            clock=self.clocks.get(node_id) or SystemClock(),
            randomness=random.Random(node_id),
            disk=disk,
            pool=pool,
            cleaner=InlineRunner(disk),
            on_fatal=lambda: self.failed.append(node_id),
        )

    def _format_options(self, node_id: int, cluster_id: str) -> FormatOptions:
        if node_id not in self._initial:
            joins = bool(self._initial)
            return FormatOptions(cluster_id=cluster_id, no_initial_controllers=joins, ignore_formatted=True)
        voters = ",".join(
            f"{each}@127.0.0.1:{self._ports[each][1]}:{format_uuid(uid(each))}" for each in self._initial
        )
        return FormatOptions(cluster_id=cluster_id, initial_controllers=voters, ignore_formatted=True)

    @property
    def active(self) -> int | None:
        return next((node_id for node_id, node in self.running.items() if node.metadata.is_active), None)

    async def leader(self) -> int:
        """Wait for a leader and return its node."""
        await until(lambda: self.active is not None)
        return self.active or -1

    async def write(self, name: str, node_id: int | None = None) -> None:
        """Make a change that needs no brokers: a quota of a client with this name."""
        quorum = self.running[await self.leader() if node_id is None else node_id].metadata
        request = AlterClientQuotasRequest(
            entries=[
                RequestEntryData(
                    entity=[EntityData(entity_type="client-id", entity_name=name)],
                    ops=[OpData(key="consumer_byte_rate", value=1000.0)],
                )
            ]
        )
        context = DecisionContext(APIS[request.API_KEY].max_version, now_ms=0, time_ms=0)
        await quorum.write(lambda: quorum.controller.decide(alter_client_quotas, request, context))

    def written(self, node_id: int) -> list[str]:
        """Return the names that are committed according to a node."""
        quotas = self.running[node_id].metadata.image.client_quotas
        return sorted(name or "" for entity in quotas for _, name in entity)

    async def agree(self, expected: list[str]) -> None:
        await until(lambda: all(self.written(each) == sorted(expected) for each in self.running))


@asynccontextmanager
async def quorum_nodes(
    folder: Path,
    ids: list[int],
    config: Mapping[str, str] | None = None,
    *,
    initial: list[int] | None = None,
    disks: Mapping[int, Disk] | None = None,
    clocks: Mapping[int, Clock] | None = None,
) -> AsyncIterator[QuorumNodes]:
    nodes = QuorumNodes(folder, ids, config or {}, initial or [])
    nodes.disks.update(disks or {})
    nodes.clocks.update(clocks or {})
    try:
        await nodes.start(*(initial or ids))
        yield nodes
    finally:
        await nodes.close()
        await asyncio.sleep(0)
