"""The segments of a log in ascending order, found by offset.

Every change makes a new tuple, so a reader in another thread keeps the list it began with.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence

from moldau.storage.segment.segment import Segment


class SegmentList:
    __slots__ = ("_bases", "items")

    def __init__(self, segments: Iterable[Segment]) -> None:
        self.items = tuple(sorted(segments, key=lambda segment: segment.base_offset))
        self._bases = tuple(segment.base_offset for segment in self.items)

    @property
    def active(self) -> Segment:
        return self.items[-1]

    def floor(self, offset: int) -> int:
        """The number of the segment that would hold an offset; 0 for one before them all."""
        return max(0, bisect_right(self._bases, offset) - 1)

    def since(self, offset: int) -> tuple[Segment, ...]:
        """Those that may hold the offset or a later one."""
        return self.items[self.floor(offset) :]

    def end_of(self, number: int, log_end_offset: int) -> int:
        """Where the offsets of a segment end."""
        return self._bases[number + 1] if number + 1 < len(self._bases) else log_end_offset

    def with_changes(self, *, without: Sequence[Segment] = (), added: Sequence[Segment] = ()) -> SegmentList:
        kept = [segment for segment in self.items if segment not in without]
        return SegmentList([*kept, *added])
