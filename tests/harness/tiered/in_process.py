"""A node in this process with tiered storage in a folder, and topics whose closed segments are only there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from moldau.metadata.image import ResourceType
from moldau.network.client import NodeConnection
from moldau.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from moldau.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from moldau.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from moldau.server.node import Node
from moldau.server.tiered.partitions import TieredPartition
from moldau.server.tiered.tiered_storage import TieredStorage
from moldau.storage.log.log import Log
from tests.harness.nodes.node import connected, running_node
from tests.harness.tiered.faulty_store import FaultyStore
from tests.harness.tiered.worlds import SEGMENT_BYTES, tiered_config
from tests.harness.wire.batches import batch
from tests.harness.wire.requests import produce_request

_BATCH_BYTES = 600_000
_SET = 0
_TIERED = {
    "remote.storage.enable": "true",
    "segment.bytes": str(SEGMENT_BYTES),
    "local.retention.bytes": "1",
}


class TieredNode:
    def __init__(self, node: Node, connection: NodeConnection) -> None:
        self.node = node
        self.connection = connection

    @property
    def tiered(self) -> TieredStorage:
        tiered = self.node.broker.tiered
        assert tiered is not None
        return tiered

    @property
    def faulty_store(self) -> FaultyStore:
        """The store of a node that was started with the class `FaultyStore`."""
        store = self.tiered.store.plugin
        assert isinstance(store, FaultyStore)
        return store

    async def create(self, topic: str, configs: dict[str, str] | None = None) -> bytes:
        own = _TIERED if configs is None else configs
        new = CreatableTopic(
            name=topic,
            num_partitions=1,
            replication_factor=1,
            configs=[CreatableTopicConfig(name=name, value=value) for name, value in own.items()],
        )
        answer = await self.connection.call(CreateTopicsRequest(topics=[new]))
        assert answer.topics[0].error_code == 0, answer.topics[0].error_message
        return bytes(answer.topics[0].topic_id)

    async def produce(self, topic: str, count: int, size: int = _BATCH_BYTES) -> None:
        """Produce batches, each of which has a segment of its own by default."""
        for _ in range(count):
            answer = await self.connection.call(produce_request(topic, batch([(b"k", b"v" * size)])), 12)
            assert answer.responses[0].partition_responses[0].error_code == 0

    async def fill(self, topic: str, count: int = 4) -> bytes:
        """Create a topic, and wait until only its last batch is on the local disk."""
        topic_id = await self.create(topic)
        await self.produce(topic, count)
        await until(lambda: self.local_start(topic) >= count - 1)
        return topic_id

    def partition(self, topic: str) -> TieredPartition:
        (found,) = [each for each in self.tiered.partitions if each.id.topic == topic]
        return found

    def log(self, topic: str) -> Log:
        return self.node.broker.replicas.by_name(topic, 0).usable_log()

    def local_start(self, topic: str) -> int:
        return self.log(topic).local_log_start_offset

    async def alter(self, topic: str, configs: dict[str, str]) -> None:
        """Set configs of a topic."""
        changes = [
            AlterableConfig(name=name, config_operation=_SET, value=text) for name, text in configs.items()
        ]
        resource = AlterConfigsResource(
            resource_type=ResourceType.TOPIC, resource_name=topic, configs=changes
        )
        answer = await self.connection.call(IncrementalAlterConfigsRequest(resources=[resource]))
        assert answer.responses[0].error_code == 0, answer.responses[0].error_message

    async def fetch(
        self, *asked: tuple[bytes, int], wait_ms: int = 0, min_bytes: int = 1, committed: bool = False
    ) -> Any:
        """Fetch partition 0 of topics from offsets."""
        topics = [
            FetchTopic(
                topic_id=topic_id,
                partitions=[FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)],
            )
            for topic_id, offset in asked
        ]
        request = FetchRequest(
            max_wait_ms=wait_ms, min_bytes=min_bytes, isolation_level=int(committed), topics=topics
        )
        return await self.connection.call(request, 13)


@asynccontextmanager
async def tiered_node(folder: Path, **configs: str) -> AsyncIterator[TieredNode]:
    """Run a node; `configs` have `__` for dots."""
    own = {name.replace("__", "."): value for name, value in configs.items()}
    config = tiered_config(folder / "remote") | own
    async with running_node(folder, config) as node, connected(node) as connection:
        yield TieredNode(node, connection)


@asynccontextmanager
async def another_client(world: TieredNode) -> AsyncIterator[TieredNode]:
    """Yield a second connection to the node."""
    async with connected(world.node) as connection:
        yield TieredNode(world.node, connection)


async def until(condition: Callable[[], Any], seconds: float = 20) -> None:
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.01)
