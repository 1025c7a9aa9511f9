"""How far a partition is fetched and copied, and where its records are stored on the target. Pure.

A producer acknowledges batches of a partition in order, possibly in parts if they had to be split. Records
are therefore counted: the next acknowledged records are the next queued ones.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from moldau.pipelines.mirror.copy.batches import Span
from moldau.pipelines.mirror.translation.runs import Run


class PartitionProgress:
    def __init__(self, position: int) -> None:
        #: The next source offset to fetch.
        self.position = position
        #: The first source offset that the target has not acknowledged.
        self.copied = position
        #: The bytes of batches that the target has not acknowledged.
        self.queued_bytes = 0
        self._queued: deque[_Queued] = deque()

    def queue(self, spans: Iterable[Span], next_offset: int, size: int = 0) -> None:
        """Add a batch that was given to the producer."""
        self._queued.append(_Queued(deque(spans), next_offset, size))
        self.queued_bytes += size
        self.position = max(self.position, next_offset)

    def skip(self, next_offset: int) -> None:
        """Move the position over offsets without records to copy."""
        self.position = max(self.position, next_offset)
        if self._queued:
            self._queued[-1].next_offset = max(self._queued[-1].next_offset, next_offset)
        else:
            self.copied = max(self.copied, next_offset)

    def stored(self, base_offset: int, records: int) -> list[Run]:
        """Take an acknowledgement; return where records are stored (none if the offset is unknown, -1)."""
        runs: list[Run] = []
        downstream = base_offset
        while records > 0 and self._queued:
            batch = self._queued[0]
            first, length = batch.spans.popleft()
            taken = min(length, records)
            if taken < length:
                batch.spans.appendleft((first + taken, length - taken))
            runs.append(Run(first, downstream, taken))
            downstream += taken
            records -= taken
            self.copied = max(self.copied, first + taken)
            if not batch.spans:
                self._queued.popleft()
                self.queued_bytes -= batch.size
                self.copied = max(self.copied, batch.next_offset)
        return runs if base_offset >= 0 else []


class _Queued:
    __slots__ = ("next_offset", "size", "spans")

    def __init__(self, spans: deque[Span], next_offset: int, size: int) -> None:
        self.spans = spans
        self.next_offset = next_offset
        self.size = size
