"""The high watermarks that the lag of groups needs, wherever the leaders of the partitions are.

The leader of a partition knows its high watermark, and a replica that is in sync nearly does; for other
partitions the leader is asked, for at most a second per scrape. Leaders are asked side by side, so that one
that does not answer leaves only its own partitions unknown.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Final

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import TopicPartition
from moldau.replication.replica_manager import ReplicaManager
from moldau.server.brokers.high_watermarks import LeaderHighWatermarks
from moldau.server.metrics.slices import ScrapeSlice
from moldau.server.publisher import MetadataPublisher

_ASK_SECONDS: Final = 1.0
#: Partitions of a leader in one request: more would occupy the event loops of both nodes at once.
_ASKED_AT_ONCE: Final = 200


class HighWatermarks:
    def __init__(
        self, replicas: ReplicaManager, metadata: MetadataPublisher, leaders: LeaderHighWatermarks
    ) -> None:
        self._replicas = replicas
        self._metadata = metadata
        self._leaders = leaders
        self._asked: dict[TopicPartition, int] = {}

    def get(self, partition: TopicPartition) -> int | None:
        local = self._local(partition)
        return self._asked.get(partition) if local is None else local

    def exists(self, partition: TopicPartition) -> bool:
        return self._leader(partition) is not None

    async def ask_for(self, partitions: Iterable[TopicPartition], turn: ScrapeSlice) -> None:
        """Ask the leaders of partitions that this node has no in-sync replica of."""
        self._asked = {}
        by_leader: dict[int, list[TopicPartition]] = {}
        for partition in partitions:
            leader = self._leader(partition)
            if leader is not None and leader >= 0 and self._local(partition) is None:
                by_leader.setdefault(leader, []).append(partition)
            await turn.pause()
        if by_leader:
            async with turn.waiting():
                self._asked = await ask_leaders(by_leader, self._ask, _ASK_SECONDS)

    async def _ask(self, partition: TopicPartition) -> int:
        topic = self._metadata.image.topics.by_name.get(partition.topic)
        if topic is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return await self._leaders.of(topic.id, partition.partition)

    def _leader(self, partition: TopicPartition) -> int | None:
        """Return the leader, -1 if there is none now; None if the partition does not exist."""
        topic = self._metadata.image.topics.by_name.get(partition.topic)
        registration = None if topic is None else topic.partitions.get(partition.partition)
        return None if registration is None else registration.leader

    def _local(self, partition: TopicPartition) -> int | None:
        try:
            found = self._replicas.by_name(*partition)
            registration, log = found.registration, found.log
        except KafkaError:
            return None
        if log is None or not (found.is_leader or self._replicas.broker_id in registration.isr):
            return None
        return log.high_watermark


async def ask_leaders(
    by_leader: Mapping[int, Sequence[TopicPartition]],
    ask: Callable[[TopicPartition], Awaitable[int]],
    timeout_seconds: float,
) -> dict[TopicPartition, int]:
    """Return the answers that arrive in time; partitions whose leader fails or is late are missing."""
    found: dict[TopicPartition, int] = {}

    async def ask_one(partition: TopicPartition) -> None:
        try:
            found[partition] = await ask(partition)
        except KafkaError:
            return

    async def ask_all(partitions: Sequence[TopicPartition]) -> None:
        for begin in range(0, len(partitions), _ASKED_AT_ONCE):
            await asyncio.gather(*map(ask_one, partitions[begin : begin + _ASKED_AT_ONCE]))

    tasks = [asyncio.ensure_future(ask_all(partitions)) for partitions in by_leader.values()]
    done, late = await asyncio.wait(tasks, timeout=timeout_seconds)
    for task in late:
        task.cancel()
    for task in done:
        task.result()
    return found
