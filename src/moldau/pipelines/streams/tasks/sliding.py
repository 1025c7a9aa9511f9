"""Sliding windows (KIP-450): for every record the window that ends with it, and the window that starts right
after it if that one is not empty.

A new record is added to the existing windows that contain it. Then up to three windows are created: the one
right after the previous record, if the new record is the first in it; the one that ends with the new record;
and the one right after the new record, with the aggregate of the smallest window around it. No window starts
before the epoch, so the first records share one window that starts there.
"""

from __future__ import annotations

import pickle
from struct import Struct
from typing import TYPE_CHECKING

from moldau.pipelines.streams.dsl.windows import SlidingWindows
from moldau.pipelines.streams.tasks.aggregation import Functions, Updates
from moldau.pipelines.streams.tasks.state import StateMap
from moldau.pipelines.streams.tasks.task import Out, Row

if TYPE_CHECKING:
    from moldau.pipelines.streams.tasks.windowed_aggregation import WindowCloser

_LONG = Struct(">q")
#: The aggregate of a window, and the timestamp of its newest record.
_Window = tuple[bytes | None, int]
#: Windows by their starts.
_Windows = dict[int, _Window]


class SlidingWindowState:
    """The open windows of each key, stored as one entry and watched under the key."""

    def __init__(
        self,
        functions: Functions,
        windows: SlidingWindows,
        rows: StateMap,
        closer: WindowCloser,
        updates: Updates,
    ) -> None:
        self._functions = functions
        self._size_ms = windows.time_difference_ms
        self._rows = rows
        self._closer = closer
        self._updates = updates

    def add(self, key: bytes, row: Row) -> bool:
        if self._closer.is_closed(row.timestamp + self._size_ms):
            return True
        windows = self._windows(key)
        add = self._add_near_epoch if row.timestamp < self._size_ms else self._add_after_epoch
        is_late = add(key, windows, row)
        self._store(key, windows)
        return is_late

    def _add_after_epoch(self, key: bytes, windows: _Windows, row: Row) -> bool:
        now = row.timestamp
        around: _Window | None = None
        before: _Window | None = None
        previous: int | None = None
        ends_here = is_late = False
        near = [start for start in windows if max(0, now - 2 * self._size_ms) <= start <= now]
        for start in sorted(near, reverse=True):
            found, end = windows[start], start + self._size_ms
            if end < now:
                before, previous = found, found[1]
                break
            if end > now:
                around = around or found
                is_late |= self._add_to_window(key, windows, start, row)
                continue
            ends_here = True
            is_late |= self._add_to_window(key, windows, start, row)
            if found[1] == now:
                return is_late
            previous = found[1]
        is_late |= self._create_after_previous(key, windows, row, previous)
        if not ends_here:
            start = now - self._size_ms
            # The window after the previous record may just have become the same one.
            windows.pop(start, None)
            if before is not None and previous is not None and start <= previous:
                windows[start] = (before[0], now)
            is_late |= self._add_to_window(key, windows, start, row)
        self._create_after(key, windows, row, around)
        return is_late

    def _add_near_epoch(self, key: bytes, windows: _Windows, row: Row) -> bool:
        now = row.timestamp
        shared = windows.get(0)
        around = None
        is_late = False
        for start in sorted(start for start in windows if 0 < start <= now):
            around = windows[start]
            is_late |= self._add_to_window(key, windows, start, row)
        if around is None and shared is not None and shared[1] > now:
            around = shared
        self._create_after(key, windows, row, around)
        if shared is not None and shared[1] < now:
            is_late |= self._create_after_previous(key, windows, row, shared[1])
        return self._add_to_window(key, windows, 0, row) or is_late

    def _create_after_previous(self, key: bytes, windows: _Windows, row: Row, previous: int | None) -> bool:
        """Create the window right after the previous record, if this record is the first in it. Return
        whether the record is late for it."""
        if previous is None:
            return False
        start = previous + 1
        if start not in windows and start + self._size_ms >= row.timestamp:
            return self._add_to_window(key, windows, start, row)
        return False

    def _create_after(self, key: bytes, windows: _Windows, row: Row, around: _Window | None) -> None:
        """Create the window right after this record, if a window around the record has newer records."""
        start = row.timestamp + 1
        if start not in windows and around is not None and around[1] > row.timestamp:
            windows[start] = around
            self._watch(key, start)
            self._updates.update(Out(key + _LONG.pack(start), around[0], around[1], row.headers))

    def _add_to_window(self, key: bytes, windows: _Windows, start: int, row: Row) -> bool:
        """Add a row to the window that starts at `start`. Return whether the row is late for it."""
        if self._closer.is_closed(start + self._size_ms):
            return True
        functions = self._functions
        value, newest = windows.get(start, (None, row.timestamp))
        aggregate = functions.initial() if value is None else functions.deserialize(value)
        result = functions.serialize(functions.add(functions.key(key), row, aggregate))
        windows[start] = (result, max(newest, row.timestamp))
        self._watch(key, start)
        self._updates.update(Out(key + _LONG.pack(start), result, windows[start][1], row.headers))
        return False

    def _watch(self, key: bytes, start: int) -> None:
        self._closer.watch(start + self._size_ms, key)

    def close(self, watched: bytes, end: int) -> None:
        """Emit the result of the window that ends at `end`. Its state is kept until no record can arrive for
        which a window would be derived from it."""
        windows = self._windows(watched)
        start, still_needed_ms = end - self._size_ms, 2 * self._size_ms + 2
        value, newest = windows.get(start, (None, 0))
        if value is not None:
            self._updates.result(Out(watched + _LONG.pack(start), value, newest))
        kept = {each: windows[each] for each in windows if each > start - still_needed_ms}
        if start in kept:
            self._closer.watch(end + still_needed_ms, watched)
        self._store(watched, kept)

    def _windows(self, key: bytes) -> _Windows:
        stored = self._rows.get(key)
        return {} if stored is None else pickle.loads(stored)

    def _store(self, key: bytes, windows: _Windows) -> None:
        if windows:
            self._rows.put(key, pickle.dumps(windows))
        else:
            self._rows.delete(key)
