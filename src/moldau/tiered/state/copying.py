"""Which local segments are copied to the remote tier next, and how a copy is described.

Closed segments below the last stable offset are copied in order, so that the remote tier has only committed
records whose transactions are decided.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

from moldau.base.ids import Uuid
from moldau.storage.log.log import Log
from moldau.storage.segment.segment import Segment
from moldau.tiered.state.lineage import epochs_between
from moldau.tiered.state.segments import PartitionId, RemoteSegment


class Candidate(NamedTuple):
    """A closed segment, and the offset at which the next one begins."""

    segment: Segment
    next_offset: int


def candidates(log: Log) -> list[Candidate]:
    """Return the closed segments that are not copied yet, oldest first."""
    first = max(log.highest_remote_offset + 1, log.local_log_start_offset)
    stable = log.last_stable_offset
    segments = log.segments.current.since(first)
    return [
        Candidate(segment, following.base_offset)
        for segment, following in pairwise(segments)
        if first < following.base_offset <= stable and segment.size > 0
    ]


def only_local_bytes(log: Log) -> int:
    """Return the size of the local segments that are not in the remote tier."""
    segments = log.segments.current.since(log.highest_remote_offset + 1)
    if segments and segments[0].base_offset <= log.highest_remote_offset:
        segments = segments[1:]
    return sum(segment.size for segment in segments)


def planned_copy(
    log: Log,
    candidate: Candidate,
    partition_id: PartitionId,
    segment_id: Uuid,
    *,
    broker_id: int,
    now_ms: int,
) -> RemoteSegment | None:
    """Return the metadata of a copy; None if the log has no leader epochs for it."""
    segment, next_offset = candidate
    epochs = epochs_between(log.leader_epochs.entries, segment.base_offset, next_offset)
    if not epochs:
        return None
    return RemoteSegment(
        partition_id=partition_id,
        id=segment_id,
        start_offset=segment.base_offset,
        end_offset=next_offset - 1,
        epochs=tuple(epochs),
        size=segment.size,
        max_timestamp_ms=segment.largest_timestamp(),
        broker_id=broker_id,
        event_timestamp_ms=now_ms,
        txn_index_empty=not segment.txn_index.entries(),
    )
