"""The end of one partition's log, and the callbacks that wait for it to advance.

Consumers and coordinators wait for the high watermark, followers for the log end offset, DeleteRecords for
the log start offset of followers, and producers with acks=all until one offset is committed.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from itertools import count

from moldau.base.errors import ErrorCode
from moldau.storage.log.log import Log

#: Called with the number of new bytes; 0 if there is another reason to check again.
Observer = Callable[[int], None]
#: Called once, with NONE if the record is committed by enough replicas.
OnCommitted = Callable[[ErrorCode], None]


class Observers:
    """Callbacks, called in the order in which they were added."""

    __slots__ = ("_observers",)

    def __init__(self) -> None:
        self._observers: dict[Observer, None] = {}

    def __len__(self) -> int:
        return len(self._observers)

    def add(self, observer: Observer) -> None:
        self._observers[observer] = None

    def remove(self, observer: Observer) -> None:
        self._observers.pop(observer, None)

    def notify(self, size: int) -> None:
        for observer in list(self._observers):
            observer(size)


class PendingCommits:
    """Produce requests with acks=all that wait until the high watermark reaches their end offset."""

    __slots__ = ("_numbers", "_pending")

    def __init__(self) -> None:
        #: A heap, ordered by offset and, for equal offsets, by arrival.
        self._pending: list[tuple[int, int, OnCommitted]] = []
        self._numbers = count()

    def __len__(self) -> int:
        return len(self._pending)

    def add(self, end_offset: int, on_committed: OnCommitted) -> None:
        heapq.heappush(self._pending, (end_offset, next(self._numbers), on_committed))

    def complete(self, high_watermark: int, code: ErrorCode) -> None:
        """Complete those that wait for an offset up to the high watermark."""
        pending = self._pending
        while pending and pending[0][0] <= high_watermark:
            heapq.heappop(pending)[2](code)

    def fail(self, code: ErrorCode) -> None:
        """Complete all with an error, because this node does not lead any more."""
        pending, self._pending = self._pending, []
        for _, _, on_committed in pending:
            on_committed(code)


class Progress:
    __slots__ = ("_commits", "_uncommitted_bytes", "high_watermark", "log_end", "log_start")

    def __init__(self) -> None:
        self.high_watermark, self.log_end, self.log_start = Observers(), Observers(), Observers()
        self._commits = PendingCommits()
        self._uncommitted_bytes = 0

    def when_committed(self, offset: int, on_committed: OnCommitted) -> None:
        """Call back once the record at `offset` is committed, or cannot be committed by this leader."""
        self._commits.add(offset + 1, on_committed)

    def appended(self, size: int) -> None:
        self._uncommitted_bytes += size

    def begin_epoch(self) -> None:
        """Restart the count of uncommitted bytes; fetches that wait belong to an earlier leader epoch."""
        self._uncommitted_bytes = 0
        self.log_end.notify(0)

    def advance(self, log: Log, offset: int, commit_code: Callable[[Log], ErrorCode]) -> None:
        """Raise the high watermark to `offset`, never lower it; `commit_code` is the result of commits."""
        before = log.high_watermark
        if offset <= before:
            return
        log.high_watermark = offset
        reached = log.high_watermark
        if reached == before:
            return
        size = self._uncommitted_bytes
        if reached < log.log_end_offset:
            size = size * (reached - before) // (log.log_end_offset - before)
        self._uncommitted_bytes -= size
        self.high_watermark.notify(max(1, size))
        if self._commits:
            self._commits.complete(reached, commit_code(log))

    def abandon(self, code: ErrorCode) -> None:
        """Fail pending commits and let all observers check again: role or log have changed."""
        self._commits.fail(code)
        for observers in (self.high_watermark, self.log_end, self.log_start):
            observers.notify(0)
