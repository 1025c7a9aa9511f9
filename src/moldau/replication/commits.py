"""Who waits until the log is committed up to an offset: produce requests with acks=all."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from itertools import count

from moldau.base.errors import ErrorCode

#: Told once how it ended.
Done = Callable[[ErrorCode], None]


class Commits:
    __slots__ = ("_numbers", "_waiting")

    def __init__(self) -> None:
        #: In order of offset, and of arrival for one offset.
        self._waiting: list[tuple[int, int, Done]] = []
        self._numbers = count()

    def add(self, end_offset: int, done: Done) -> None:
        heapq.heappush(self._waiting, (end_offset, next(self._numbers), done))

    def reached(self, high_watermark: int, code: ErrorCode) -> None:
        """Tell all that waited for this much."""
        waiting = self._waiting
        while waiting and waiting[0][0] <= high_watermark:
            heapq.heappop(waiting)[2](code)

    def fail(self, code: ErrorCode) -> None:
        """Tell everybody that it will not come to that here."""
        waiting, self._waiting = self._waiting, []
        for _, _, done in waiting:
            done(code)
