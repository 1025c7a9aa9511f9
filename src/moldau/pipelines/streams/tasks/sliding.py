"""Sliding windows: for every record the window that ends with it, and the one that begins behind it if
anything is in it.

A new record is added to the windows that it lies in. Then up to three windows are made: the one behind the
record before it, if the new record is the first there; the one that ends with it; and the one behind it,
which has what the smallest window around it had. Before the epoch no window begins, so the first records
share one that begins there.
"""

from __future__ import annotations

import pickle

from moldau.pipelines.streams.dsl.windows import SlidingWindows
from moldau.pipelines.streams.tasks.aggregation import LONG, Closing, Functions
from moldau.pipelines.streams.tasks.task import Out, Row

#: By their starts: the aggregate and its newest record.
_Windows = dict[int, tuple[bytes | None, int]]


class SlidingAggregation(Closing):
    """All open windows of a key are one piece of state."""

    def __init__(self, functions: Functions, windows: SlidingWindows, final: bool) -> None:
        super().__init__(functions, final)
        self._size_ms = windows.time_difference_ms
        self.grace_ms = windows.grace_ms

    def is_closed(self, end: int) -> bool:
        """The end belongs to the window."""
        return end < self.stream_time - self.grace_ms

    def windowed(self, key: bytes, row: Row) -> None:
        if self.is_closed(row.timestamp + self._size_ms):
            self.is_late = True
            return
        stored = self.state["rows"].get(key)
        windows: _Windows = {} if stored is None else pickle.loads(stored)
        place = self._early if row.timestamp < self._size_ms else self._usual
        place(key, windows, row)
        self._keep(key, windows)

    def _usual(self, key: bytes, windows: _Windows, row: Row) -> None:
        now = row.timestamp
        around: tuple[bytes | None, int] | None = None
        before: tuple[bytes | None, int] | None = None
        previous: int | None = None
        ends_here = False
        near = [start for start in windows if max(0, now - 2 * self._size_ms) <= start <= now]
        for start in sorted(near, reverse=True):
            found, end = windows[start], start + self._size_ms
            if end < now:
                before, previous = found, found[1]
                break
            if end > now:
                around = around or found
                self._add(key, windows, start, row)
                continue
            ends_here = True
            self._add(key, windows, start, row)
            if found[1] == now:
                return
            previous = found[1]
        self._behind_previous(key, windows, row, previous)
        if not ends_here:
            start = now - self._size_ms
            # The window behind the record before may just have become the same one.
            windows.pop(start, None)
            if before is not None and previous is not None and start <= previous:
                windows[start] = (before[0], now)
            self._add(key, windows, start, row)
        self._behind(key, windows, row, around)

    def _early(self, key: bytes, windows: _Windows, row: Row) -> None:
        now = row.timestamp
        shared = windows.get(0)
        around = None
        for start in sorted(start for start in windows if 0 < start <= now):
            around = windows[start]
            self._add(key, windows, start, row)
        if around is None and shared is not None and shared[1] > now:
            around = shared
        self._behind(key, windows, row, around)
        if shared is not None and shared[1] < now:
            self._behind_previous(key, windows, row, shared[1])
        self._add(key, windows, 0, row)

    def _behind_previous(self, key: bytes, windows: _Windows, row: Row, previous: int | None) -> None:
        """The window behind the record before this one, which is the first in it."""
        if previous is None:
            return
        start = previous + 1
        if start not in windows and start + self._size_ms >= row.timestamp:
            self._add(key, windows, start, row)

    def _behind(
        self, key: bytes, windows: _Windows, row: Row, around: tuple[bytes | None, int] | None
    ) -> None:
        """The window behind this record, with what of a window around it is newer."""
        start = row.timestamp + 1
        if start not in windows and around is not None and around[1] > row.timestamp:
            windows[start] = around
            self._watch(key, start)
            self.update(Out(key + LONG.pack(start), around[0], around[1], row.headers))

    def _add(self, key: bytes, windows: _Windows, start: int, row: Row) -> None:
        if self.is_closed(start + self._size_ms):
            self.is_late = True
            return
        functions = self.functions
        value, newest = windows.get(start, (None, row.timestamp))
        so_far = functions.first() if value is None else functions.stored(value)
        result = functions.result(functions.add(functions.key(key), row, so_far))
        windows[start] = (result, max(newest, row.timestamp))
        self._watch(key, start)
        self.update(Out(key + LONG.pack(start), result, windows[start][1], row.headers))

    def _watch(self, key: bytes, start: int) -> None:
        self.watch(start + self._size_ms, key)

    def closed(self, place: bytes, end: int) -> None:
        """A closed window says its result; it goes when no record can be that would still begin with it."""
        stored = self.state["rows"].get(place)
        windows: _Windows = {} if stored is None else pickle.loads(stored)
        start, still_needed_ms = end - self._size_ms, 2 * self._size_ms + 2
        value, newest = windows.get(start, (None, 0))
        if self.final and value is not None:
            super(Closing, self).update(Out(place + LONG.pack(start), value, newest))
        kept = {each: windows[each] for each in windows if each > start - still_needed_ms}
        if start in kept:
            self.watch(end + still_needed_ms, place)
        self._keep(place, kept)

    def _keep(self, key: bytes, windows: _Windows) -> None:
        if windows:
            self.state["rows"].put(key, pickle.dumps(windows))
        else:
            self.state["rows"].delete(key)
