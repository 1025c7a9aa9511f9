"""Acquisition locks: they reserve records for a member until `share.record.lock.duration.ms` has passed."""

from __future__ import annotations

import heapq

_MIN_COMPACTION_SIZE = 256


class AcquisitionLock:
    """The lock of records acquired together; in force for those states that still hold it."""

    __slots__ = ("deadline_ms", "expired", "first", "holders", "last")

    def __init__(self, deadline_ms: int, first: int, last: int) -> None:
        self.deadline_ms = deadline_ms
        self.first = first
        self.last = last
        self.expired = False
        self.holders = 0


class AcquisitionLocks:
    """The locks of one share partition, ordered by deadline. Locks without holders are dropped lazily."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, AcquisitionLock]] = []
        self._taken = 0
        self._compaction_size = _MIN_COMPACTION_SIZE

    def take(self, deadline_ms: int, first: int, last: int) -> AcquisitionLock:
        lock = AcquisitionLock(deadline_ms, first, last)
        self._taken += 1
        heapq.heappush(self._heap, (deadline_ms, self._taken, lock))
        if len(self._heap) > self._compaction_size:
            # The new lock has no holder yet.
            self._heap = [each for each in self._heap if each[2].holders or each[2] is lock]
            heapq.heapify(self._heap)
            self._compaction_size = max(_MIN_COMPACTION_SIZE, 2 * len(self._heap))
        return lock

    def next_deadline(self) -> int | None:
        """Return when the next lock expires, or None if no record is locked."""
        while self._heap and not self._heap[0][2].holders:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def expire(self, now_ms: int) -> list[AcquisitionLock]:
        """Remove, mark and return the expired locks."""
        found = []
        while self._heap and self._heap[0][0] <= now_ms:
            lock = heapq.heappop(self._heap)[2]
            if lock.holders:
                lock.expired = True
                found.append(lock)
        return found
