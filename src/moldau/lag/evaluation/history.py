"""The history of the commits of a group in bounded memory.

Commits are packed into arrays of machine integers, because a monitor keeps one history for every partition of
every group.
"""

from __future__ import annotations

from array import array
from typing import Final

from moldau.lag.evaluation.rules import Commit

_UNKNOWN_LAG: Final = -1
#: Values per commit: offset, time, lag.
_WIDTH: Final = 3
#: Commits that are kept although they are older than the window: with two, the distance of rare commits is
#: known, so that a consumer that commits less often than once in a window is not taken for a stopped one.
_MIN_COMMITS: Final = 2


class CommitHistory:
    """The commits of a group for one partition, up to `capacity` of them within a window."""

    __slots__ = ("_capacity", "_values", "first_seen_ms", "read_ms")

    def __init__(self, capacity: int, now_ms: int) -> None:
        self._capacity = capacity
        self._values = array("q")
        #: When the committed offset was read for the first and for the last time.
        self.first_seen_ms = self.read_ms = now_ms

    def __len__(self) -> int:
        return len(self._values) // _WIDTH

    @property
    def last_offset(self) -> int | None:
        return self._values[-_WIDTH] if self._values else None

    def add(self, commit: Commit, window_ms: int) -> None:
        """Append a commit; remove those that are older than the window before it."""
        lag = _UNKNOWN_LAG if commit.lag is None else commit.lag
        self._values.extend((commit.offset, commit.time_ms, lag))
        drop = max(len(self) - self._capacity, 0)
        oldest = commit.time_ms - window_ms
        while len(self) - drop > _MIN_COMMITS and self._values[drop * _WIDTH + 1] < oldest:
            drop += 1
        del self._values[: drop * _WIDTH]

    @property
    def first(self) -> Commit | None:
        return _commit(*self._values[:_WIDTH]) if self._values else None

    @property
    def last(self) -> Commit | None:
        return _commit(*self._values[-_WIDTH:]) if self._values else None

    def commits(self) -> list[Commit]:
        values = self._values.tolist()
        return list(map(_commit, values[::_WIDTH], values[1::_WIDTH], values[2::_WIDTH]))


def _commit(offset: int, time_ms: int, lag: int) -> Commit:
    return Commit(offset, time_ms, None if lag == _UNKNOWN_LAG else lag)
