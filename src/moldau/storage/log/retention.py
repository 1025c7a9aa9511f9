"""Retention: which segments exceed `retention.ms` or `retention.bytes`, or precede the log start offset.

Segments expire from the oldest on, never past the high watermark, and never an empty active segment. A log
whose segments are copied to the remote tier follows `local.retention.ms` and `local.retention.bytes` instead,
and keeps every segment until its copy is confirmed.
"""

from __future__ import annotations

from collections.abc import Callable

from moldau.storage.log.config import LogConfig
from moldau.storage.segment.segment import Segment


def expired_segments(
    segments: tuple[Segment, ...],
    config: LogConfig,
    *,
    now_ms: int,
    log_start_offset: int,
    log_end_offset: int,
    high_watermark: int,
    highest_remote_offset: int,
) -> list[Segment]:
    """The leading segments that one of the rules deletes."""
    bounds = [segment.base_offset for segment in segments[1:]] + [log_end_offset]
    removable = [
        segment
        for segment, bound in zip(segments, bounds, strict=True)
        if bound <= high_watermark and not (segment is segments[-1] and segment.size == 0)
    ]
    before_start = sum(1 for bound in bounds[:-1] if bound <= log_start_offset)
    expired = removable[:before_start]
    if config.delete:
        max_age_ms, max_bytes = config.retention_ms, config.retention_bytes
        rest = removable[len(expired) :]
        if config.copies_to_remote:
            max_age_ms, max_bytes = (
                config.effective_local_retention_ms,
                config.effective_local_retention_bytes,
            )
            copied = sum(1 for bound in bounds if bound <= highest_remote_offset + 1)
            rest = removable[len(expired) : max(copied, len(expired))]
        by_size = _leading(rest, _over_size(rest, segments[len(expired) :], max_bytes))
        expired += by_size
        expired += _leading(rest[len(by_size) :], _over_age(max_age_ms, now_ms))
    return expired


def should_roll_for_copy(active: Segment, config: LogConfig, now_ms: int) -> bool:
    """Whether the active segment is so old that it is closed, to be copied and then deleted locally."""
    if not config.copies_to_remote or active.size == 0:
        return False
    return _over_age(config.effective_local_retention_ms, now_ms)(active)


def _leading(segments: list[Segment], too_much: Callable[[Segment], bool]) -> list[Segment]:
    found: list[Segment] = []
    for segment in segments:
        if not too_much(segment):
            break
        found.append(segment)
    return found


def _over_size(
    rest: list[Segment], remaining: tuple[Segment, ...], retention_bytes: int
) -> Callable[[Segment], bool]:
    excess = sum(segment.size for segment in remaining) - retention_bytes

    def over(segment: Segment) -> bool:
        nonlocal excess
        excess -= segment.size
        return retention_bytes >= 0 and excess >= 0

    return over


def _over_age(retention_ms: int, now_ms: int) -> Callable[[Segment], bool]:
    def over(segment: Segment) -> bool:
        return retention_ms >= 0 and now_ms - segment.largest_timestamp() > retention_ms

    return over
