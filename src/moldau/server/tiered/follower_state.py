"""The state that a follower needs to begin where its leader's local log begins (KIP-405).

The records before that offset are in the remote tier and are not copied. The segment with the last of them
has the leader epochs and the producers up to its end, where the follower then continues.

The state is built in a task of its own: the fetcher that asks for it also replicates the metadata topic, for
which the task may have to wait. Until the state is available, the fetcher receives a retriable error.
"""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import TopicPartition
from moldau.replication.partition import Partition
from moldau.server.tiered.metadata import RemoteLogMetadata
from moldau.server.tiered.store import StoreCalls
from moldau.storage.log.leader_epochs import EpochEntry, parse_leader_epochs
from moldau.storage.log.log import RemoteTierState
from moldau.storage.producers.snapshot import CorruptSnapshot, decode_snapshot
from moldau.tiered.state.segments import PartitionId, RemoteSegment
from moldau.tiered.stores.interface import RemoteStoreError

#: How long a fetcher waits before it continues with other partitions.
_WAIT_SECONDS = 0.05


class _Wanted(NamedTuple):
    last_remote_offset: int
    leader_epoch: int
    log_start_offset: int


class FollowerState:
    def __init__(self, metadata: RemoteLogMetadata, store: StoreCalls) -> None:
        self._metadata = metadata
        self._store = store
        self._building: dict[PartitionId, tuple[_Wanted, asyncio.Task[RemoteTierState]]] = {}

    async def close(self) -> None:
        tasks = [task for _, task in self._building.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def build(
        self, partition: Partition, last_remote_offset: int, leader_epoch: int, log_start_offset: int
    ) -> RemoteTierState:
        """Return the state after the segment that has an offset of a leader epoch."""
        topic, index = partition.topic_partition
        partition_id = PartitionId(topic, partition.topic_id, index)
        wanted = _Wanted(last_remote_offset, leader_epoch, log_start_offset)
        known = self._building.get(partition_id)
        if known is not None and known[0] != wanted:
            known[1].cancel()
            known = None
        if known is None:
            task = asyncio.create_task(self._build(partition_id, wanted))
            known = self._building[partition_id] = (wanted, task)
        await asyncio.wait([known[1]], timeout=_WAIT_SECONDS)
        if not known[1].done():
            raise KafkaError(
                ErrorCode.REPLICA_NOT_AVAILABLE, f"the state of {partition_id} is still being built"
            )
        if self._building.get(partition_id) is known:
            del self._building[partition_id]
        if known[1].cancelled():
            raise KafkaError(ErrorCode.REPLICA_NOT_AVAILABLE, f"{partition_id} is at another offset now")
        return known[1].result()

    async def _build(self, partition_id: PartitionId, wanted: _Wanted) -> RemoteTierState:
        remote = await self._metadata.synchronize(partition_id)
        segment = remote.lookup(wanted.leader_epoch, wanted.last_remote_offset)
        if segment is None:
            raise KafkaError(
                ErrorCode.REPLICA_NOT_AVAILABLE,
                f"offset {wanted.last_remote_offset} of {partition_id} is not in the remote tier yet",
            )
        try:
            async with self._store.followers:
                return await self._store.read(
                    self._load, partition_id.topic_partition, segment, wanted.log_start_offset
                )
        except (RemoteStoreError, CorruptSnapshot, ValueError, IndexError) as error:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error

    def _load(
        self, topic_partition: TopicPartition, segment: RemoteSegment, log_start_offset: int
    ) -> RemoteTierState:
        indexes = self._store.indexes.get(segment)
        next_offset = segment.end_offset + 1
        epochs = [
            EpochEntry(*entry)
            for entry in parse_leader_epochs(indexes.leader_epochs)
            if entry.start_offset < next_offset
        ]
        if not epochs:
            raise ValueError(f"{segment} of {topic_partition} has no leader epochs")
        return RemoteTierState(next_offset, log_start_offset, epochs, decode_snapshot(indexes.producers))
