"""The bounds of a log's records: log start offset, high watermark and last stable offset.

`log_start_offset` ≤ `high_watermark` ≤ log end offset. Consumers read below the high watermark; those with
`isolation.level=read_committed` read below the last stable offset, the first offset of the oldest transaction
that is open or whose marker is not below the high watermark yet.
"""

from __future__ import annotations

from moldau.storage.log.segments import LogSegments
from moldau.storage.producers.state import ProducerState


class LogOffsets:
    __slots__ = ("_producers", "_segments", "first_unstable_offset", "high_watermark", "log_start_offset")

    def __init__(self, segments: LogSegments, producers: ProducerState, log_start_offset: int) -> None:
        self._segments = segments
        self._producers = producers
        self.log_start_offset = log_start_offset
        self.high_watermark = log_start_offset
        self.first_unstable_offset = producers.first_unstable_offset()

    @property
    def last_stable_offset(self) -> int:
        unstable = self.first_unstable_offset
        return self.high_watermark if unstable is None else min(unstable, self.high_watermark)

    def advance_high_watermark(self, offset: int) -> None:
        """Raise the high watermark, at most to the log end; only `truncate` lowers it."""
        offset = min(offset, self._segments.end_offset)
        if offset > self.high_watermark:
            self.high_watermark = offset
            if self.first_unstable_offset is not None:
                self.update_first_unstable()

    def advance_start(self, offset: int) -> None:
        """Raise the log start offset, and the high watermark with it."""
        self.log_start_offset = offset
        self.high_watermark = max(self.high_watermark, offset)
        self.update_first_unstable()

    def truncate(self, log_start_offset: int) -> None:
        """Fit the offsets to segments that were truncated."""
        self.log_start_offset = log_start_offset
        self.high_watermark = max(log_start_offset, min(self.high_watermark, self._segments.end_offset))

    def update_first_unstable(self) -> None:
        """Find the oldest undecided transaction after producers or the high watermark changed."""
        self._producers.forget_replicated(self.high_watermark)
        unstable = self._producers.first_unstable_offset()
        self.first_unstable_offset = None if unstable is None else max(unstable, self.log_start_offset)
