"""The choice of the log to compact next: what can be cleaned, how dirty each log is, which is the dirtiest.

A log is clean up to the cleaner checkpoint and dirty after it. Of the dirty part, the active segment, offsets
at or after the last stable offset, and segments with records younger than `min.compaction.lag.ms` are not
cleaned. A log qualifies if the ratio of its cleanable part exceeds `min.cleanable.dirty.ratio`, or if its
oldest dirty record is older than `max.compaction.lag.ms`. The log with the highest ratio is cleaned first.

These functions only read. They may read indexes on disk, so they run in the pool, on the list of segments as
of their start.
"""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from moldau.storage.log.log import Log
from moldau.storage.segment.segment import Segment

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Dirtiness:
    """The cleanable part of one log: dirty offsets [first_dirty, first_uncleanable)."""

    log: Log
    first_dirty_offset: int
    first_uncleanable_offset: int
    clean_bytes: int
    cleanable_bytes: int
    overdue_ms: int
    checkpoint_invalid: bool

    @property
    def ratio(self) -> float:
        total = self.clean_bytes + self.cleanable_bytes
        return self.cleanable_bytes / total if total else 0.0

    @property
    def worth_cleaning(self) -> bool:
        if self.cleanable_bytes == 0:
            return False
        return self.overdue_ms > 0 or self.ratio > self.log.config.min_cleanable_dirty_ratio


def dirtiest(candidates: Iterable[Dirtiness]) -> Dirtiness | None:
    """Return the log to clean next, if any is dirty enough."""
    worthwhile = [candidate for candidate in candidates if candidate.worth_cleaning]
    return max(worthwhile, key=lambda candidate: candidate.ratio, default=None)


def examine(log: Log, checkpoint: int | None, now_ms: int) -> Dirtiness:
    """Compute how dirty a log is, given its cleaner checkpoint."""
    segments = log.segments.items
    closed = segments[:-1]
    first_dirty, invalid = _first_dirty_offset(log, checkpoint)
    bound = max(first_dirty, _cleanable_up_to(log, segments, first_dirty, now_ms))
    first_uncleanable = segments[_floor(segments, bound)].base_offset
    dirty = [
        segment
        for segment in closed[_floor(segments, min(first_dirty, first_uncleanable)) :]
        if segment.base_offset < first_uncleanable
    ]
    return Dirtiness(
        log=log,
        first_dirty_offset=first_dirty,
        first_uncleanable_offset=first_uncleanable,
        clean_bytes=sum(segment.size for segment in segments if segment.base_offset < first_dirty),
        cleanable_bytes=sum(segment.size for segment in dirty),
        overdue_ms=_overdue_ms(log, closed[_floor(segments, first_dirty) :], now_ms),
        checkpoint_invalid=invalid,
    )


def _first_dirty_offset(log: Log, checkpoint: int | None) -> tuple[int, bool]:
    """Return the first dirty offset, and whether the checkpoint is invalid."""
    start = log.log_start_offset
    if checkpoint is None:
        return start, False
    if checkpoint < start:
        if not log.config.delete:
            logger.warning(
                "%s: the cleaner checkpoint %d is before the log start offset %d; cleaning from there",
                log.topic_partition, checkpoint, start,
            )  # fmt: skip
        return start, True
    if checkpoint > log.log_end_offset:
        logger.warning(
            "%s: the cleaner checkpoint %d is after the log end offset %d; cleaning from the log start %d",
            log.topic_partition, checkpoint, log.log_end_offset, start,
        )  # fmt: skip
        return start, True
    return checkpoint, False


def _cleanable_up_to(log: Log, segments: Sequence[Segment], first_dirty: int, now_ms: int) -> int:
    bound = min(log.last_stable_offset, segments[-1].base_offset)
    lag_ms = log.config.min_compaction_lag_ms
    if lag_ms > 0:
        for segment in segments[_floor(segments, first_dirty) : -1]:
            if segment.largest_timestamp() > now_ms - lag_ms:
                return min(bound, segment.base_offset)
    return bound


def _overdue_ms(log: Log, dirty: Sequence[Segment], now_ms: int) -> int:
    """Return the time by which the oldest dirty segment exceeds `max.compaction.lag.ms`."""
    clean_until = now_ms - max(log.config.max_compaction_lag_ms, 0)
    if clean_until <= 0:
        return 0
    timestamps = (segment.first_batch_timestamp() for segment in dirty)
    earliest = min(
        (timestamp for timestamp in timestamps if timestamp is not None and timestamp > 0), default=None
    )
    return 0 if earliest is None else max(0, clean_until - earliest)


def _floor(segments: Sequence[Segment], offset: int) -> int:
    """The index of the segment whose range includes `offset`; 0 for an offset before the first."""
    return max(0, bisect_right(segments, offset, key=lambda segment: segment.base_offset) - 1)
