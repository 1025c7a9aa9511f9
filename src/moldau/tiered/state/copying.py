"""Which local segments are copied to the remote tier next, and how a copy is described.

Closed segments below the last stable offset are copied in order, so that the remote tier has only committed
records whose transactions are decided.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from moldau.base.ids import Uuid
from moldau.storage.log.leader_epochs import EpochEntry
from moldau.storage.log.log import Log
from moldau.storage.segment.segment import Segment
from moldau.tiered.state.lineage import copied_until, epochs_between, highest_ever_copied
from moldau.tiered.state.remote_log import RemoteLog
from moldau.tiered.state.segments import PartitionId, RemoteSegment


class Candidate(NamedTuple):
    """A closed segment, and the offset at which the next one begins."""

    segment: Segment
    next_offset: int


def candidates(log: Log, remote: RemoteLog) -> list[Candidate]:
    """Return the closed segments that the remote tier does not have, oldest first."""
    first, stable = log.local_log_start_offset, log.last_stable_offset
    epochs = log.leader_epochs.entries
    return [
        Candidate(segment, following.base_offset)
        for segment, following in pairwise(log.segments.current.since(first))
        if first < following.base_offset <= stable
        and segment.size > 0
        and not _has(remote, epochs, max(segment.base_offset, first), following.base_offset)
    ]


def highest_remote_offset(log: Log, remote: RemoteLog) -> int:
    """Return the offset up to which the remote tier has the records that are on this disk; -1 if it has none.

    What was copied once may have been deleted since, when tiered storage was disabled for a while. So only
    segments that the remote tier has now count. Those before the local log need not be there any more:
    retention has deleted them.
    """
    epochs = log.leader_epochs.entries
    offset = log.local_log_start_offset
    for segment, following in pairwise(log.segments.current.since(offset)):
        end = following.base_offset
        if segment.size > 0 and not _has(remote, epochs, offset, end):
            break
        offset = end
    offset = copied_until(remote, epochs, offset, log.log_end_offset)
    return min(offset - 1, highest_ever_copied(remote, epochs, log.log_end_offset))


def _has(remote: RemoteLog, epochs: Sequence[EpochEntry], start: int, end: int) -> bool:
    return copied_until(remote, epochs, start, end) == end


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
