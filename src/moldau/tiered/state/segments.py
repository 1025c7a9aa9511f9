"""One segment in the remote tier: its metadata, its states and the records that carry them.

States and transitions are Kafka's:

    COPY_SEGMENT_STARTED → COPY_SEGMENT_FINISHED → DELETE_SEGMENT_STARTED → DELETE_SEGMENT_FINISHED

A copy that failed goes from COPY_SEGMENT_STARTED to DELETE_SEGMENT_STARTED. Repeating a state is allowed,
because a record may be written twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

from moldau.base.ids import TopicId, TopicPartition, Uuid, format_uuid
from moldau.protocol.stored.remote_log import (
    RemoteLogSegmentIdEntry,
    RemoteLogSegmentMetadataRecord,
    RemoteLogSegmentMetadataUpdateRecord,
    SegmentLeaderEpochEntry,
    TopicIdPartitionEntry,
)
from moldau.storage.log.leader_epochs import EpochEntry


class SegmentState(IntEnum):
    COPY_SEGMENT_STARTED = 0
    COPY_SEGMENT_FINISHED = 1
    DELETE_SEGMENT_STARTED = 2
    DELETE_SEGMENT_FINISHED = 3


_NEXT: dict[SegmentState | None, tuple[SegmentState, ...]] = {
    None: (SegmentState.COPY_SEGMENT_STARTED,),
    SegmentState.COPY_SEGMENT_STARTED: (
        SegmentState.COPY_SEGMENT_FINISHED,
        SegmentState.DELETE_SEGMENT_STARTED,
    ),
    SegmentState.COPY_SEGMENT_FINISHED: (SegmentState.DELETE_SEGMENT_STARTED,),
    SegmentState.DELETE_SEGMENT_STARTED: (SegmentState.DELETE_SEGMENT_FINISHED,),
    SegmentState.DELETE_SEGMENT_FINISHED: (),
}


def may_follow(state: SegmentState | None, target: SegmentState) -> bool:
    """Return whether a segment in `state` (None: unknown) may change to `target`."""
    return state is target or target in _NEXT[state]


class PartitionId(NamedTuple):
    """A partition of one incarnation of a topic."""

    topic: str
    topic_id: TopicId
    partition: int

    @property
    def topic_partition(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class RemoteSegment(NamedTuple):
    """The metadata of a segment in the remote tier; `end_offset` is its last offset.

    `epochs` are the leader epochs of its records with their first offsets in the segment.
    """

    partition_id: PartitionId
    id: Uuid
    start_offset: int
    end_offset: int
    epochs: tuple[EpochEntry, ...]
    size: int
    max_timestamp_ms: int
    broker_id: int
    event_timestamp_ms: int
    state: SegmentState = SegmentState.COPY_SEGMENT_STARTED
    custom_metadata: bytes | None = None
    txn_index_empty: bool = False

    def __str__(self) -> str:
        offsets = f"{self.start_offset} to {self.end_offset}"
        return f"segment {format_uuid(self.id)} of {self.partition_id} with offsets {offsets}"

    def end_of_epoch(self, epoch: int) -> int:
        """Return the last offset of an epoch in this segment."""
        later = [entry.start_offset for entry in self.epochs if entry.epoch > epoch]
        return min(later) - 1 if later else self.end_offset


def _segment_id(partition_id: PartitionId, segment_id: Uuid) -> RemoteLogSegmentIdEntry:
    topic, topic_id, partition = partition_id
    entry = TopicIdPartitionEntry(name=topic, id=topic_id, partition=partition)
    return RemoteLogSegmentIdEntry(topic_id_partition=entry, id=segment_id)


def partition_id_of(entry: TopicIdPartitionEntry) -> PartitionId:
    return PartitionId(entry.name, entry.id, entry.partition)


def metadata_record(segment: RemoteSegment) -> RemoteLogSegmentMetadataRecord:
    """Return the record that announces a segment."""
    return RemoteLogSegmentMetadataRecord(
        remote_log_segment_id=_segment_id(segment.partition_id, segment.id),
        start_offset=segment.start_offset,
        end_offset=segment.end_offset,
        broker_id=segment.broker_id,
        max_timestamp_ms=segment.max_timestamp_ms,
        event_timestamp_ms=segment.event_timestamp_ms,
        segment_leader_epochs=[
            SegmentLeaderEpochEntry(leader_epoch=entry.epoch, offset=entry.start_offset)
            for entry in segment.epochs
        ],
        segment_size_in_bytes=segment.size,
        custom_metadata=segment.custom_metadata,
        remote_log_segment_state=segment.state,
        txn_index_empty=segment.txn_index_empty,
    )


def update_record(
    segment: RemoteSegment,
    state: SegmentState,
    *,
    broker_id: int,
    now_ms: int,
    custom_metadata: bytes | None = None,
) -> RemoteLogSegmentMetadataUpdateRecord:
    """Return the record that moves a segment to another state."""
    return RemoteLogSegmentMetadataUpdateRecord(
        remote_log_segment_id=_segment_id(segment.partition_id, segment.id),
        broker_id=broker_id,
        event_timestamp_ms=now_ms,
        custom_metadata=custom_metadata if custom_metadata is not None else segment.custom_metadata,
        remote_log_segment_state=state,
    )


def announced_segment(record: RemoteLogSegmentMetadataRecord) -> RemoteSegment:
    """Return the segment of a record; `ValueError` for an unknown state."""
    epochs = sorted(EpochEntry(each.leader_epoch, each.offset) for each in record.segment_leader_epochs)
    return RemoteSegment(
        partition_id=partition_id_of(record.remote_log_segment_id.topic_id_partition),
        id=record.remote_log_segment_id.id,
        start_offset=record.start_offset,
        end_offset=record.end_offset,
        epochs=tuple(epochs),
        size=record.segment_size_in_bytes,
        max_timestamp_ms=record.max_timestamp_ms,
        broker_id=record.broker_id,
        event_timestamp_ms=record.event_timestamp_ms,
        state=SegmentState(record.remote_log_segment_state),
        custom_metadata=record.custom_metadata,
        txn_index_empty=record.txn_index_empty,
    )


def updated_segment(segment: RemoteSegment, record: RemoteLogSegmentMetadataUpdateRecord) -> RemoteSegment:
    """Return a segment after a change of its state."""
    return segment._replace(
        state=SegmentState(record.remote_log_segment_state),
        broker_id=record.broker_id,
        event_timestamp_ms=record.event_timestamp_ms,
        custom_metadata=record.custom_metadata,
    )


def total_size(segments: Sequence[RemoteSegment]) -> int:
    return sum(segment.size for segment in segments)
