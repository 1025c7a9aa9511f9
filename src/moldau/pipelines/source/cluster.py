"""Query the cluster for the topics, partitions and offsets of a subscription, on the driver, once per
trigger.

One Metadata request returns the partitions, one ListOffsets request to each leader their ends; connections
are kept open. Retriable errors (a broker is down, a leader moves) are retried: for some seconds at the first
contact, so that a wrong address is reported, and for minutes later.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import ZERO_UUID, TopicPartition, Uuid
from moldau.client.admin.client import AdminClient
from moldau.client.admin.offsets import ListedOffset, OffsetSpec
from moldau.pipelines.source.offsets import Positions
from moldau.pipelines.source.options import SourceOptions
from moldau.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from moldau.protocol.messages.metadata import MetadataResponse

R = TypeVar("R")

ABSENT = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID})


@dataclass(slots=True)
class Topics:
    """`missing` are topics requested by name that do not exist; old brokers return no topic ids."""

    ids: dict[str, Uuid] = field(default_factory=dict)
    leaders: dict[TopicPartition, int] = field(default_factory=dict)
    missing: set[str] = field(default_factory=set)

    @property
    def partitions(self) -> frozenset[TopicPartition]:
        return frozenset(self.leaders)


@dataclass(frozen=True, slots=True)
class Ends:
    """The end of every partition of the subscription."""

    ids: dict[str, Uuid]
    positions: Positions
    missing: frozenset[str]


class TopicCluster:
    """A blocking client for one thread."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self.admin = AdminClient(options.settings)

    def topics(self) -> Topics:
        return self._run(self._retried(self._topics))

    def ends(self) -> Ends:
        return self._run(self.ends_async())

    async def ends_async(self) -> Ends:
        return await self._retried(self._ends)

    def offsets(self, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Return offsets by `OffsetSpec` or timestamp; -1 if no record matches. Missing partitions are
        omitted."""
        if not wanted:
            return {}
        committed = self._options.read_committed
        listed = self._run(self.admin.client.list_offsets(wanted, read_committed=committed))
        found = {}
        for partition, each in listed.items():
            if isinstance(each, ListedOffset):
                found[partition] = each.offset
            elif each.code not in ABSENT:
                raise each
        return found

    def earliest(self, partitions: Iterable[TopicPartition], topics: Topics | None = None) -> Positions:
        """Return the log start offsets; partitions that do not exist are omitted."""
        wanted = set(partitions)
        if not wanted:
            return {}
        there = (topics or self.topics()).leaders.keys() & wanted
        return self.offsets(dict.fromkeys(there, OffsetSpec.EARLIEST))

    def close(self) -> None:
        self.admin.close()

    def run(self, work: Coroutine[Any, Any, R]) -> R:
        return self.admin.run(work)

    def _run(self, work: Coroutine[Any, Any, R]) -> R:
        result = self.admin.run(work)
        self.admin.client.cluster.settings = self._options.connected_settings
        return result

    async def _retried(self, attempt: Callable[[], Awaitable[R]]) -> R:
        return await self.admin.client.cluster.retry(attempt)

    async def _topics(self) -> Topics:
        response = await self.admin.client.cluster.metadata(self._options.subscription.names)
        return _subscribed(response, self._options)

    async def _ends(self) -> Ends:
        topics = await self._topics()
        by_leader: dict[int, list[TopicPartition]] = defaultdict(list)
        for partition, leader in topics.leaders.items():
            if leader < 0:
                raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, f"{partition} has no leader")
            by_leader[leader].append(partition)
        responses = await asyncio.gather(*(self._ends_at(*each) for each in by_leader.items()))
        positions = {partition: offset for response in responses for partition, offset in response.items()}
        return Ends(topics.ids, positions, frozenset(topics.missing))

    async def _ends_at(self, leader: int, partitions: list[TopicPartition]) -> Positions:
        topics: dict[str, ListOffsetsTopic] = {}
        for name, index in partitions:
            topic = topics.setdefault(name, ListOffsetsTopic(name=name))
            topic.partitions.append(ListOffsetsPartition(partition_index=index, timestamp=OffsetSpec.LATEST))
        request = ListOffsetsRequest(
            replica_id=-1,
            isolation_level=int(self._options.read_committed),
            topics=list(topics.values()),
            timeout_ms=self._options.settings.request_timeout_ms,
        )
        response: ListOffsetsResponse = await self.admin.client.cluster.ask_node(leader, request)
        found: Positions = {}
        for each in response.topics:
            for partition in each.partitions:
                if partition.error_code:
                    raise _retriable(
                        TopicPartition(each.name, partition.partition_index), partition.error_code
                    )
                found[TopicPartition(each.name, partition.partition_index)] = partition.offset
        return found


def _subscribed(response: MetadataResponse, options: SourceOptions) -> Topics:
    found = Topics()
    for topic in response.topics:
        name = topic.name or ""
        if topic.error_code in ABSENT:
            found.missing.add(name)
        elif topic.error_code:
            raise KafkaError(ErrorCode(topic.error_code), f"topic {name}: {ErrorCode(topic.error_code).name}")
        elif options.subscription.matches_topic(name, internal=topic.is_internal):
            if topic.topic_id != ZERO_UUID:
                found.ids[name] = topic.topic_id
            for each in topic.partitions:
                partition = TopicPartition(name, each.partition_index)
                if options.subscription.matches(partition):
                    found.leaders[partition] = each.leader_id
    return found


def _retriable(partition: TopicPartition, code: int) -> KafkaError:
    """Return a retriable error for a partition that existed a moment ago: the next Metadata request
    decides."""
    known = ErrorCode(code)
    if known in ABSENT:
        known = ErrorCode.LEADER_NOT_AVAILABLE
    return KafkaError(known, f"{partition}: {ErrorCode(code).name}")
