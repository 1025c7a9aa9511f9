"""The subscribers of one topic by load: which member gets the next partition, and which gives one up.

Two ranges of the sorted members matter: the least loaded at the left and the most loaded at the right. The
members of a range start with equal loads and are taken in turn; after a round, the range grows by the members
with the same load.
"""

from __future__ import annotations

from collections.abc import Sequence


class Loads:
    def __init__(self, sizes: Sequence[int], members: Sequence[int]) -> None:
        """`sizes` has the loads of all members and may change meanwhile; `members` are indexes of it."""
        self._sizes = sizes
        self._sorted = sorted(members, key=lambda index: (sizes[index], index))
        lowest, highest = sizes[self._sorted[0]], sizes[self._sorted[-1]]
        self.imbalance = highest - lowest
        self._least_end = 0
        self._least_size = lowest - 1
        self._next_least = 0
        self._most_start = len(members)
        self._most_end = len(members)
        self._most_size = highest + 1
        self._next_most = len(members) - 1

    @property
    def balanced(self) -> bool:
        return self._most_size - self._least_size <= 1

    def next_least_loaded(self) -> int:
        if self._next_least >= self._least_end:
            self._least_size += 1
            while self._least_end < len(self._sorted) and self._size_at(self._least_end) == self._least_size:
                self._least_end += 1
            self._next_least = 0
        found = self._sorted[self._next_least]
        self._next_least += 1
        return found

    def next_most_loaded(self) -> int | None:
        """Return the next most loaded member, or None if there is none left."""
        if self._next_most < self._most_start:
            self._grow_most_loaded()
        if self._next_most < 0:
            return None
        found = self._sorted[self._next_most]
        self._next_most -= 1
        return found

    def _grow_most_loaded(self) -> None:
        if self._most_end <= self._most_start and self._most_start > 0:
            # All members of the range were excluded: continue with the next load.
            self._most_size = self._size_at(self._most_start - 1)
        else:
            self._most_size -= 1
        while self._most_start > 0 and self._size_at(self._most_start - 1) == self._most_size:
            self._most_start -= 1
        self._next_most = self._most_end - 1

    def exclude_most_loaded(self) -> None:
        """Exclude the last result of `next_most_loaded`: it has no partition of this topic."""
        last, end = self._next_most + 1, self._most_end - 1
        self._sorted[last], self._sorted[end] = self._sorted[end], self._sorted[last]
        self._most_end -= 1

    def _size_at(self, position: int) -> int:
        return self._sizes[self._sorted[position]]
