"""Partition counts and leaders of topics, for the batch writer.

Metadata is cached for five minutes, as in Kafka's producer, unless a response says that it is outdated. A
missing topic is created if the cluster has `auto.create.topics.enable`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import ZERO_UUID, TopicPartition, Uuid
from moldau.client.wire.cluster import Cluster
from moldau.client.wire.errors import about, error_of
from moldau.protocol.messages.metadata import MetadataResponseTopic

_MAX_AGE_S = 300
#: A topic is created automatically within this time.
_CREATED_WITHIN_S = 3
#: A broker that has just started may not know all topics yet.
_DELETED_AFTER_S = 5
_MISSING = {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.LEADER_NOT_AVAILABLE}


class Leaders:
    def __init__(self, cluster: Cluster, timeout_ms: int) -> None:
        self._cluster = cluster
        self._timeout_ms = timeout_ms
        self._counts: dict[str, int] = {}
        self._leaders: dict[TopicPartition, int] = {}
        self._ids: dict[str, Uuid] = {}
        self._names: dict[Uuid, str] = {}
        self._updated_at: dict[str, float] = {}
        self._missing_since: dict[str, float] = {}

    def leader(self, partition: TopicPartition) -> int | None:
        return self._leaders.get(partition)

    def topic_id(self, name: str) -> Uuid:
        return self._ids.get(name, ZERO_UUID)

    def topic_name(self, name: str, topic_id: Uuid) -> str:
        """Return the name of a topic in a response, which has either its name or its id."""
        return name or self._names.get(topic_id, "")

    def forget(self, partition: TopicPartition) -> None:
        """Drop the cached leader of a partition, which is outdated."""
        self._leaders.pop(partition, None)

    async def partition_counts(self, topics: Iterable[str], *, fresh: bool = False) -> dict[str, int]:
        """Return the partition count of each topic; `MissingTopic` names the remedy for a missing one."""
        wanted = list(topics)
        now = asyncio.get_running_loop().time()
        known_until = {name: at + _MAX_AGE_S for name, at in self._updated_at.items()}
        old = [name for name in wanted if fresh or known_until.get(name, 0.0) <= now]
        if old:
            await self._find(old)
        return {name: self._counts[name] for name in wanted}

    async def update(self, topics: Iterable[str]) -> None:
        """Update the leaders of topics once; partitions may remain without leader."""
        now = asyncio.get_running_loop().time()
        for topic in (await self._cluster.metadata(topics)).topics:
            self._take(topic)
            name = topic.name or ""
            if topic.error_code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                self._missing_since.pop(name, None)
            elif now > self._missing_since.setdefault(name, now) + _DELETED_AFTER_S:
                raise MissingTopic(f"Topic {name!r} does not exist any more: was it deleted?")

    async def _find(self, topics: list[str]) -> None:
        give_up = asyncio.get_running_loop().time() + _CREATED_WITHIN_S

        async def attempt() -> None:
            late = asyncio.get_running_loop().time() > give_up
            missing = None
            for topic in (await self._cluster.metadata(topics, create=True)).topics:
                code = ErrorCode.of(topic.error_code)
                if code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and late:
                    raise _no_topic(topic.name or "", self._cluster)
                if code in _MISSING:
                    missing = topic.name
                elif code is not ErrorCode.NONE:
                    raise about(f"Topic {topic.name}", error_of(code))
                else:
                    self._take(topic)
            if missing is not None:
                raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, f"Topic {missing} has no leader yet.")

        await self._cluster.retry(attempt, timeout_ms=self._timeout_ms)

    def _take(self, topic: MetadataResponseTopic) -> None:
        name = topic.name or ""
        if topic.error_code or not topic.partitions:
            return
        self._counts[name] = len(topic.partitions)
        self._ids[name] = topic.topic_id
        self._names[topic.topic_id] = name
        self._updated_at[name] = asyncio.get_running_loop().time()
        for partition in topic.partitions:
            where = TopicPartition(name, partition.partition_index)
            if partition.leader_id >= 0:
                self._leaders[where] = partition.leader_id
            else:
                self._leaders.pop(where, None)


class MissingTopic(KafkaError):
    """A topic does not exist and is not created automatically."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.INVALID_TOPIC_EXCEPTION, message)


def _no_topic(name: str, cluster: Cluster) -> MissingTopic:
    address = cluster.settings.bootstrap[0]
    return MissingTopic(
        f"Topic {name!r} does not exist, and the cluster does not create topics automatically "
        f"(auto.create.topics.enable). Create it: kafka-topics --bootstrap-server {address} --create "
        f"--topic {name} --partitions 3",
    )
