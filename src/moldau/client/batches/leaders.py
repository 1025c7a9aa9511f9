"""Which partitions topics have and who leads them, as a writer needs to know.

What is known is kept for five minutes, as Kafka's producer does, unless an answer says that it is old. A
topic that is missing is made by a cluster that makes topics when they are first used."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import ZERO_UUID, TopicPartition, Uuid
from moldau.client.wire.cluster import Cluster
from moldau.client.wire.errors import about, error_of
from moldau.protocol.messages.metadata import MetadataResponseTopic

_MAX_AGE_S = 300
#: A topic that is made because it is used is there soon.
_MADE_WITHIN_S = 3
#: A broker that has just started may not know every topic yet.
_GONE_AFTER_S = 5
_MISSING = {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.LEADER_NOT_AVAILABLE}


class Leaders:
    def __init__(self, cluster: Cluster, timeout_ms: int) -> None:
        self._cluster = cluster
        self._timeout_ms = timeout_ms
        self._counts: dict[str, int] = {}
        self._leaders: dict[TopicPartition, int] = {}
        self._ids: dict[str, Uuid] = {}
        self._names: dict[Uuid, str] = {}
        self._learned_at: dict[str, float] = {}
        self._missing_since: dict[str, float] = {}

    def leader(self, partition: TopicPartition) -> int | None:
        return self._leaders.get(partition)

    def topic_id(self, name: str) -> Uuid:
        return self._ids.get(name, ZERO_UUID)

    def topic_name(self, name: str, topic_id: Uuid) -> str:
        """The name under which an answer speaks of a topic, or means it by its id."""
        return name or self._names.get(topic_id, "")

    def forget(self, partition: TopicPartition) -> None:
        """Its leader is another one, or none."""
        self._leaders.pop(partition, None)

    async def partition_counts(self, topics: Iterable[str], *, fresh: bool = False) -> dict[str, int]:
        """How many partitions each topic has; raises what to do about one that is missing."""
        wanted = list(topics)
        now = asyncio.get_running_loop().time()
        known_until = {name: at + _MAX_AGE_S for name, at in self._learned_at.items()}
        old = [name for name in wanted if fresh or known_until.get(name, 0.0) <= now]
        if old:
            await self._find(old)
        return {name: self._counts[name] for name in wanted}

    async def learn(self, topics: Iterable[str]) -> None:
        """Ask once for the leaders of topics; what has none now is asked for another time."""
        now = asyncio.get_running_loop().time()
        for topic in (await self._cluster.metadata(topics)).topics:
            self._take(topic)
            name = topic.name or ""
            if topic.error_code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                self._missing_since.pop(name, None)
            elif now > self._missing_since.setdefault(name, now) + _GONE_AFTER_S:
                raise MissingTopic(f"Topic {name!r} is not there any more: was it deleted?")

    async def _find(self, topics: list[str]) -> None:
        give_up = asyncio.get_running_loop().time() + _MADE_WITHIN_S

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
                raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, f"Topic {missing} is not there yet.")

        await self._cluster.retry(attempt, timeout_ms=self._timeout_ms)

    def _take(self, topic: MetadataResponseTopic) -> None:
        name = topic.name or ""
        if topic.error_code or not topic.partitions:
            return
        self._counts[name] = len(topic.partitions)
        self._ids[name] = topic.topic_id
        self._names[topic.topic_id] = name
        self._learned_at[name] = asyncio.get_running_loop().time()
        for partition in topic.partitions:
            where = TopicPartition(name, partition.partition_index)
            if partition.leader_id >= 0:
                self._leaders[where] = partition.leader_id
            else:
                self._leaders.pop(where, None)


class MissingTopic(KafkaError):
    """A topic that is not there and that nobody makes."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.INVALID_TOPIC_EXCEPTION, message)


def _no_topic(name: str, cluster: Cluster) -> MissingTopic:
    address = cluster.settings.bootstrap[0]
    return MissingTopic(
        f"There is no topic {name!r}, and the cluster does not make topics when they are first used "
        f"(auto.create.topics.enable). Create it: kafka-topics --bootstrap-server {address} --create "
        f"--topic {name} --partitions 3",
    )
