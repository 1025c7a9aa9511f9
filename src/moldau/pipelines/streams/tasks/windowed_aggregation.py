"""Aggregates with Python functions in tumbling, hopping, sliding and session windows.

A window closes when the task's stream time passes its end and the grace period; then its state is deleted.
With `final`, a window emits one result, when it closes. A record that belongs to a closed window is late: it
is not added to that window, and is written to the topic of late records.

`WindowedAggregation` is the operator; `WindowCloser` tracks when windows close; the windows themselves are
kept by `TimeWindowState`, `sessions.SessionState` and `sliding.SlidingWindowState`. The names of the state
maps and their contents are stored in checkpoints.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from struct import Struct
from typing import Protocol

from moldau.client.records import Headers
from moldau.pipelines.source.late_topics import LATE_HEADER
from moldau.pipelines.streams.dsl.windows import (
    AggregationWindows,
    SessionWindows,
    SlidingWindows,
    TimeWindows,
    takes_null_values,
)
from moldau.pipelines.streams.tasks.aggregation import AggregateTable, Functions, Updates
from moldau.pipelines.streams.tasks.sessions import SessionState
from moldau.pipelines.streams.tasks.sliding import SlidingWindowState
from moldau.pipelines.streams.tasks.state import StateMap, TimestampedMap
from moldau.pipelines.streams.tasks.task import Operator, Out, Row, Task

_LONG = Struct(">q")
_STREAM_TIME, _ENDS = b"stream-time", b"ends"


class WindowState(Protocol):
    """The open windows of a task."""

    def add(self, key: bytes, row: Row) -> bool:
        """Add a row to its windows. Return whether it is late for one of them."""

    def close(self, watched: bytes, end: int) -> None:
        """Close the windows that end at `end` and were watched under that key."""


class WindowCloser:
    """Tracks stream time, and which windows close at which time."""

    def __init__(self, stream_time: StateMap, due: StateMap, grace_ms: int, *, end_inclusive: bool) -> None:
        self._state = stream_time
        self._due_state = due
        self._grace_ms = grace_ms
        self._end_inclusive = end_inclusive
        stored = stream_time.get(_STREAM_TIME)
        self.stream_time = -1 if stored is None else int(_LONG.unpack(stored)[0])
        ends = stream_time.get(_ENDS)
        self._ends: list[int] = [] if ends is None else list(pickle.loads(ends))
        heapify(self._ends)
        # The keys watched for each end that this batch has used, and how many were stored before.
        self._due: dict[int, set[bytes]] = {}
        self._stored: dict[int, int] = {}

    def advance(self, timestamp: int) -> None:
        self.stream_time = max(self.stream_time, timestamp)

    def is_closed(self, end: int) -> bool:
        closed_before = self.stream_time - self._grace_ms
        return end < closed_before if self._end_inclusive else end <= closed_before

    def watch(self, end: int, key: bytes) -> None:
        """Yield the key from `closed` when windows that end at `end` close."""
        keys = self._keys(end)
        if not keys:
            heappush(self._ends, end)
        keys.add(key)

    def closed(self) -> Iterator[tuple[bytes, int]]:
        """Remove and return the watched keys whose windows have closed, with the ends of these windows."""
        while self._ends and self.is_closed(self._ends[0]):
            end = heappop(self._ends)
            keys = sorted(self._keys(end))
            self._keys(end).clear()
            for key in keys:
                yield key, end

    def _keys(self, end: int) -> set[bytes]:
        if end not in self._due:
            stored = self._due_state.get(_LONG.pack(end))
            self._due[end] = set() if stored is None else pickle.loads(stored)
            self._stored[end] = len(self._due[end])
        return self._due[end]

    def save(self) -> None:
        self._state.put(_STREAM_TIME, _LONG.pack(self.stream_time))
        self._state.put(_ENDS, pickle.dumps(set(self._ends)))
        for end, keys in self._due.items():
            if not keys:
                self._due_state.delete(_LONG.pack(end))
            elif len(keys) != self._stored[end]:
                self._due_state.put(_LONG.pack(end), pickle.dumps(keys))


class TimeWindowState:
    """Tumbling and hopping windows. An aggregate is stored under its key and the window's start."""

    def __init__(
        self,
        functions: Functions,
        windows: TimeWindows,
        rows: StateMap,
        closer: WindowCloser,
        updates: Updates,
    ) -> None:
        self._windows = windows
        self._table = AggregateTable(functions, TimestampedMap(rows))
        self._closer = closer
        self._updates = updates

    def add(self, key: bytes, row: Row) -> bool:
        is_late = False
        for start in self._windows.starts(row.timestamp):
            end = start + self._windows.size_ms
            if self._closer.is_closed(end):
                is_late = True
            else:
                stored_key = key + _LONG.pack(start)
                self._closer.watch(end, stored_key)
                self._updates.update(self._table.add(stored_key, key, row))
        return is_late

    def close(self, watched: bytes, end: int) -> None:
        found = self._table.rows.get(watched)
        if found.value is not None:
            self._updates.result(Out(watched, found.value, found.timestamp))
        self._table.rows.put(watched, None, 0)


class WindowedAggregation(Operator):
    """Aggregates by key and window."""

    maps = ("rows", "task", "due")

    def __init__(
        self,
        functions: Functions,
        windows: AggregationWindows,
        *,
        final: bool = False,
        late_topic: str | None = None,
    ) -> None:
        self._functions = functions
        self._windows = windows
        self._final = final
        self._late_topic = late_topic

    def open(self, task: Task) -> None:
        super().open(task)
        self._updates = Updates(self._final)
        self._closer = _closer(self._windows, task)
        self._state = _window_state(
            self._functions, self._windows, task.maps["rows"], self._closer, self._updates
        )

    def process(self, row: Row) -> None:
        ignored = row.value is None and not takes_null_values(self._windows)
        if row.key is None or ignored:
            return
        self._closer.advance(row.timestamp)
        is_late = self._state.add(row.key, row)
        if is_late and self._late_topic is not None:
            self.emit(Out(row.key, row.value, row.timestamp, _late_headers(row), self._late_topic))
        for watched, end in self._closer.closed():
            self._state.close(watched, end)

    def tick(self) -> None:
        self._updates.flush(self.emit)

    def close(self) -> None:
        self._closer.save()


def _closer(windows: AggregationWindows, task: Task) -> WindowCloser:
    """Return the closer of windows. Session and sliding windows include their end, and a session stays open
    for its gap."""
    grace_ms = windows.grace_ms
    if isinstance(windows, SessionWindows):
        grace_ms += windows.gap_ms
    end_inclusive = not isinstance(windows, TimeWindows)
    return WindowCloser(task.maps["task"], task.maps["due"], grace_ms, end_inclusive=end_inclusive)


def _window_state(
    functions: Functions,
    windows: AggregationWindows,
    rows: StateMap,
    closer: WindowCloser,
    updates: Updates,
) -> WindowState:
    match windows:
        case TimeWindows():
            return TimeWindowState(functions, windows, rows, closer, updates)
        case SessionWindows():
            return SessionState(functions, windows, rows, closer, updates)
        case SlidingWindows():
            return SlidingWindowState(functions, windows, rows, closer, updates)


def _late_headers(row: Row) -> Headers:
    """Return the headers of a late record, with the topic, partition and offset it was read from."""
    read_from = {"topic": row.topic, "partition": row.partition, "offset": row.offset}
    added = ((f"{LATE_HEADER}{name}", str(value).encode()) for name, value in read_from.items())
    return [*row.headers, *added]
