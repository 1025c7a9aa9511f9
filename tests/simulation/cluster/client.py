"""The client of a simulated cluster: finding leaders and coordinators, and retries.

Requests are sent with `network/client.py`, in versions that name topics. A failed call discards the known
leaders and coordinators; `persist` retries until there is a response that a retry would not
change.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from random import Random
from typing import Any, TypeVar

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import TopicPartition
from moldau.network.client import NodeConnection
from moldau.network.connector import PLAINTEXT, Connector
from moldau.protocol.messages.find_coordinator import FindCoordinatorRequest
from moldau.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from moldau.protocol.schema import Message

T = TypeVar("T")

GROUP, TRANSACTION = 0, 1
TIMEOUT_MS = 4000
_METADATA_VERSION, _FIND_COORDINATOR_VERSION = 12, 3
#: Errors for which a retry of the same request is useless.
FATAL = frozenset(
    {
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.UNKNOWN_PRODUCER_ID,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.TRANSACTION_ABORTABLE,
        ErrorCode.DUPLICATE_SEQUENCE_NUMBER,
        ErrorCode.OFFSET_OUT_OF_RANGE,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.UNSUPPORTED_VERSION,
        ErrorCode.TOPIC_ALREADY_EXISTS,
    }
)


class ClusterClient:
    def __init__(self, brokers: Mapping[int, str], random: Random, connector: Connector = PLAINTEXT) -> None:
        self._brokers = dict(brokers)
        self._connector = connector
        self._random = random
        self._connections: dict[int, NodeConnection] = {}
        self._leaders: dict[TopicPartition, int] = {}
        #: The latest leader epochs this client has seen; brokers with older metadata are not used.
        self.epochs: dict[TopicPartition, int] = {}
        self._coordinators: dict[tuple[int, str], int] = {}

    async def call(self, node_id: int, request: Message, version: int) -> Any:
        connection = self._connections.get(node_id)
        if connection is None or connection.closed:
            connection = await NodeConnection.connect(
                self._brokers[node_id], 9092, timeout_ms=TIMEOUT_MS, connector=self._connector
            )
            self._connections[node_id] = connection
        return await connection.call(request, version, timeout_ms=TIMEOUT_MS)

    async def call_any(self, request: Message, version: int) -> Any:
        return await self.call(self._random.choice(list(self._brokers)), request, version)

    async def leader(self, topic_partition: TopicPartition) -> int:
        if topic_partition not in self._leaders:
            request = MetadataRequest(
                topics=[MetadataRequestTopic(name=topic_partition.topic)], allow_auto_topic_creation=False
            )
            topic = (await self.call_any(request, _METADATA_VERSION)).topics[0]
            check(topic.error_code)
            for each in topic.partitions:
                found = TopicPartition(topic_partition.topic, each.partition_index)
                if each.leader_epoch >= self.epochs.get(found, -1):
                    self.epochs[found] = each.leader_epoch
                    self._leaders[found] = each.leader_id
        leader = self._leaders.get(topic_partition, -1)
        if leader not in self._brokers:
            self._leaders.clear()
            raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, str(topic_partition))
        return leader

    async def to_leader(self, topic_partition: TopicPartition, request: Message, version: int) -> Any:
        return await self.call(await self.leader(topic_partition), request, version)

    async def to_coordinator(self, kind: int, key: str, request: Message, version: int) -> Any:
        if (kind, key) not in self._coordinators:
            asked = FindCoordinatorRequest(key=key, key_type=kind)
            found = await self.call_any(asked, _FIND_COORDINATOR_VERSION)
            check(found.error_code)
            self._coordinators[kind, key] = found.node_id
        return await self.call(self._coordinators[kind, key], request, version)

    async def persist(self, attempt: Callable[[], Awaitable[T]]) -> T:
        """Retry until the call succeeds or fails with a fatal error."""
        while True:
            try:
                return await attempt()
            except KafkaError as error:
                self.forget()
                if error.code in FATAL:
                    raise
            await asyncio.sleep(self._random.uniform(0.02, 0.3))

    def forget(self) -> None:
        """Discard the known leaders and coordinators, which may be stale."""
        self._leaders.clear()
        self._coordinators.clear()

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()


def check(error_code: int) -> None:
    if error_code != ErrorCode.NONE:
        raise KafkaError(ErrorCode(error_code))
