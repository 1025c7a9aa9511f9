"""The history of offsets in bounded memory: commits of a group, and log end offsets of a partition.

Both are packed into arrays of machine integers, because a monitor keeps one history of commits for every
partition of every group. Offsets of a partition are shared by all groups that read it.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from typing import Final, NamedTuple

from moldau.lag.evaluation.rules import Commit

_UNKNOWN_LAG: Final = -1
#: Values per commit: offset, time, lag.
_WIDTH: Final = 3
#: Commits that are kept although they are older than the window: with two, the distance of rare commits is
#: known, so that a consumer that commits less often than once in a window is not taken for a stopped one.
_LEAST_COMMITS: Final = 2
#: End offsets per partition. When they are full, every second one of the older half is removed: the distance
#: of points grows with their age, and so does the time that they cover.
MOST_END_OFFSETS: Final = 64


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
        while len(self) - drop > _LEAST_COMMITS and self._values[drop * _WIDTH + 1] < oldest:
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


class Appended(NamedTuple):
    """When a record was appended; before that time unless `exact`: the record is older than the history."""

    time_ms: int
    exact: bool


class Age(NamedTuple):
    """The age of a record. It is a lower bound unless `exact`: the record is older than the history."""

    ms: int
    exact: bool


class EndOffsets:
    """The log end offset of a partition over time, from which the time of an append is interpolated."""

    __slots__ = ("_offsets", "_times")

    def __init__(self) -> None:
        self._times = array("q")
        self._offsets = array("q")

    def __len__(self) -> int:
        return len(self._times)

    @property
    def last(self) -> int | None:
        return self._offsets[-1] if self._offsets else None

    def add(self, time_ms: int, offset: int) -> None:
        """Append an observation. A lower offset than before (truncation) starts the history again."""
        times, offsets = self._times, self._offsets
        if offsets and offset < offsets[-1]:
            del times[:], offsets[:]
        if times and time_ms <= times[-1]:
            # The wall clock was set back; the order of points is what matters.
            time_ms = times[-1]
        if len(offsets) > 1 and offsets[-1] == offsets[-2] == offset:
            times[-1] = time_ms
            return
        times.append(time_ms)
        offsets.append(offset)
        if len(times) > MOST_END_OFFSETS:
            older = MOST_END_OFFSETS // 2
            del times[1:older:2], offsets[1:older:2]

    def at(self, time_ms: int) -> int | None:
        """Return the end offset at a time: of the last observation until then, or of the first one."""
        if not self._times:
            return None
        return self._offsets[max(bisect_right(self._times, time_ms) - 1, 0)]

    def appended(self, offset: int) -> Appended | None:
        """Return when the record at `offset` was appended; None if it does not exist yet.

        The record was appended when the end offset became `offset + 1`, which is interpolated between two
        observations: the result is exact within the distance of the two.
        """
        after = bisect_right(self._offsets, offset)
        if after == len(self._offsets):
            return None
        if after == 0:
            return Appended(self._times[0], False)
        begin, end = self._times[after - 1], self._times[after]
        low, high = self._offsets[after - 1], self._offsets[after]
        return Appended(begin + (end - begin) * (offset + 1 - low) // (high - low), True)

    def age_of(self, offset: int, now_ms: int) -> Age | None:
        """Return how long ago the record at `offset` was appended; None without history.

        A record that does not exist yet has the age 0.
        """
        if not self._times:
            return None
        appended = self.appended(offset)
        return Age(0, True) if appended is None else Age(max(now_ms - appended.time_ms, 0), appended.exact)

    def rate(self, since_ms: int) -> float | None:
        """Return the records per second since a time; None if the history is too short."""
        if len(self._times) < 2:
            return None
        first = min(max(bisect_right(self._times, since_ms) - 1, 0), len(self._times) - 2)
        elapsed_ms = self._times[-1] - self._times[first]
        return (self._offsets[-1] - self._offsets[first]) * 1000 / elapsed_ms if elapsed_ms else None
