"""Which remote segments are deleted, and where the log then starts.

Segments expire by `retention.ms`, by `retention.bytes` over both tiers, and by the log start offset, from
the oldest on, never past the high watermark, which a new leader may not know yet. The log start offset is
raised before anything is deleted, so that no replica offers offsets that are gone. Segments of leader epochs
before the first one of the log are not part of its history and are deleted as well, and so are copies and
deletions that were interrupted.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from moldau.base.ids import Uuid
from moldau.storage.log.leader_epochs import EpochEntry
from moldau.tiered.state.lineage import is_in_lineage, with_records
from moldau.tiered.state.remote_log import RemoteLog
from moldau.tiered.state.segments import RemoteSegment, SegmentState, total_size


class LocalLog(NamedTuple):
    """What retention must know of the leader's log; `only_local_bytes` are not in the remote tier yet."""

    epochs: Sequence[EpochEntry]
    log_start_offset: int
    log_end_offset: int
    high_watermark: int
    only_local_bytes: int


class Limits(NamedTuple):
    """`retention.ms` and `retention.bytes`; negative: unlimited."""

    age_ms: int
    size_bytes: int


class Expiry(NamedTuple):
    """The segments to delete, and the new log start offset (None: it stays)."""

    segments: list[RemoteSegment]
    log_start_offset: int | None


def expired(remote: RemoteLog, log: LocalLog, limits: Limits, now_ms: int) -> Expiry:
    """Return what the retention settings and the log start offset delete."""
    lineage = with_records(log.epochs)
    if not lineage:
        return Expiry([], None)
    readable = [segment for segment in remote.segments if segment.state is SegmentState.COPY_SEGMENT_FINISHED]
    before_start = [segment for segment in readable if _precedes(segment, log, lineage[0])]
    gone = {segment.id for segment in before_start}
    rest = [segment for segment in readable if segment.id not in gone]
    valid = [segment for segment in rest if is_in_lineage(segment, log.log_end_offset, lineage)]
    excess = -1
    if limits.size_bytes >= 0:
        excess = total_size(valid) + log.only_local_bytes - limits.size_bytes
    by_limit: list[RemoteSegment] = []
    for segment in valid:
        too_old = limits.age_ms >= 0 and segment.max_timestamp_ms < now_ms - limits.age_ms
        too_much = excess > 0 and excess >= segment.size
        if not (too_old or too_much) or segment.end_offset >= log.high_watermark:
            break
        excess -= segment.size
        by_limit.append(segment)
    start = max((segment.end_offset + 1 for segment in by_limit), default=log.log_start_offset)
    unreachable = [segment for segment in rest if segment.epochs[-1].epoch < lineage[0].epoch]
    new_start = start if start > log.log_start_offset else None
    return Expiry([*before_start, *by_limit, *unreachable], new_start)


def _precedes(segment: RemoteSegment, log: LocalLog, first: EpochEntry) -> bool:
    return segment.end_offset < log.log_start_offset and segment.epochs[-1].epoch <= first.epoch


def interrupted(
    remote: RemoteLog, *, in_progress: AbstractSet[Uuid], now_ms: int, grace_ms: int
) -> list[RemoteSegment]:
    """Return the segments whose copy or deletion began at least `grace_ms` ago and was not completed.

    Another broker may still be copying a segment that it began as the previous leader; the grace period gives
    it time to notice.
    """
    found = []
    for segment in remote.segments:
        if segment.id in in_progress:
            continue
        if segment.state is SegmentState.DELETE_SEGMENT_STARTED or (
            segment.state is SegmentState.COPY_SEGMENT_STARTED
            and now_ms - segment.event_timestamp_ms >= grace_ms
        ):
            found.append(segment)
    return found
