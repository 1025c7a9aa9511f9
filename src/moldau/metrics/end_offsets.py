"""The history of a partition's log end offset in bounded memory, and the age of its records.

The time of an append is interpolated between two observations of the log end offset, without reading
records: the lag monitor and the metrics of coordinators show lag in seconds by it. Observations are packed
into arrays of machine integers.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from typing import Final, NamedTuple

#: End offsets per partition. When they are full, every second one of the older half is removed: the distance
#: of points grows with their age, and so does the time that they cover.
MAX_END_OFFSETS: Final = 64


class Appended(NamedTuple):
    """When a record was appended; before that time unless `exact`: the record is older than the history."""

    time_ms: int
    exact: bool


class Age(NamedTuple):
    """The age of a record. It is a lower bound unless `exact`: the record is older than the history."""

    ms: int
    exact: bool


NO_AGE: Final = Age(0, True)


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
        if len(times) > MAX_END_OFFSETS:
            older = MAX_END_OFFSETS // 2
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
