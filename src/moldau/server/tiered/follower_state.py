"""The state that a follower needs to begin where its leader's local log begins (KIP-405).

The records before that offset are in the remote tier and are not copied. The segment with the last of them
has the leader epochs and the producers up to its end, where the follower then continues.
"""

from __future__ import annotations

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


class FollowerState:
    def __init__(self, metadata: RemoteLogMetadata, store: StoreCalls) -> None:
        self._metadata = metadata
        self._store = store

    async def build(
        self, partition: Partition, last_remote_offset: int, leader_epoch: int, log_start_offset: int
    ) -> RemoteTierState:
        """Return the state after the segment that has an offset of a leader epoch."""
        topic, index = partition.topic_partition
        partition_id = PartitionId(topic, partition.topic_id, index)
        remote = await self._metadata.synchronize(partition_id)
        segment = remote.lookup(leader_epoch, last_remote_offset)
        if segment is None:
            raise KafkaError(
                ErrorCode.REPLICA_NOT_AVAILABLE,
                f"offset {last_remote_offset} of {partition_id} is not in the remote tier yet",
            )
        try:
            return await self._store.read(self._load, partition.topic_partition, segment, log_start_offset)
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
