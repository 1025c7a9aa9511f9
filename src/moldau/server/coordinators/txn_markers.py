"""Writes the end marker of a transaction to partitions that this node leads.

A marker for a partition of `__consumer_offsets` goes through the group coordinator, which commits or drops
the pending offsets with it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable

from moldau.base.clock import Clock
from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import CONSUMER_OFFSETS_TOPIC, TopicPartition
from moldau.base.loop_slice import LoopSlice
from moldau.groups.shard import GroupShard
from moldau.replication.replica_manager import ReplicaManager
from moldau.server.coordinators.coordinator import Coordinator
from moldau.server.partitions.delayed_produce import until_committed
from moldau.server.settings import NodeSettings
from moldau.statemachine.coordinator_records import EndTransaction, encode_entries
from moldau.storage.log.append import Origin

#: Errors of the group coordinator that WriteTxnMarkers reports as NOT_LEADER_OR_FOLLOWER.
_NOT_COORDINATOR = frozenset(
    {
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
    }
)

Results = dict[TopicPartition, ErrorCode]


class TxnMarkerWriter:
    def __init__(
        self,
        replicas: ReplicaManager,
        groups: Coordinator[GroupShard],
        settings: NodeSettings,
        clock: Clock,
    ) -> None:
        self._replicas = replicas
        self._groups = groups
        self._settings = settings
        self._clock = clock

    async def write(self, end: EndTransaction, partitions: Iterable[TopicPartition]) -> Results:
        """Append the marker to each partition, wait until it is committed, and return the error codes."""
        results: Results = {}
        waits: list[tuple[TopicPartition, Awaitable[None]]] = []
        loop_slice = LoopSlice(self._clock)
        for each in partitions:
            await loop_slice.pause()
            try:
                wait = self._append(end, each)
            except KafkaError as error:
                self._replicas.storage_failed(error)
                results[each] = error.code
            else:
                results[each] = ErrorCode.NONE
                if wait is not None:
                    waits.append((each, wait))
        codes = await asyncio.gather(*(self._code(wait) for _, wait in waits))
        return results | {each: code for (each, _), code in zip(waits, codes, strict=True)}

    def _append(self, end: EndTransaction, topic_partition: TopicPartition) -> Awaitable[None] | None:
        """Append the marker and return what remains to be awaited, if anything."""
        if topic_partition.topic == CONSUMER_OFFSETS_TOPIC:
            self._replicas.by_name(*topic_partition)
            return self._end_offset_commits(end, topic_partition)
        partition = self._replicas.by_name(*topic_partition)
        partition.leader_log()
        partition.check_in_sync()
        marker = encode_entries((end,), self._clock.time_ms())
        info = partition.append(
            marker, origin=Origin.COORDINATOR, transaction_version=end.transaction_version
        )
        if partition.committed(info.last_offset):
            return None
        return until_committed(partition, info.last_offset, self._settings.config["request.timeout.ms"])

    async def _code(self, wait: Awaitable[None]) -> ErrorCode:
        try:
            await wait
        except KafkaError as error:
            self._replicas.storage_failed(error)
            return error.code
        return ErrorCode.NONE

    async def _end_offset_commits(self, end: EndTransaction, topic_partition: TopicPartition) -> None:
        try:
            await self._groups.write_at(topic_partition.partition, lambda shard: shard.end_transaction(end))
        except KafkaError as error:
            if error.code in _NOT_COORDINATOR:
                raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, error.message) from error
            raise
