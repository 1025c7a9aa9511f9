"""Aggregates with the user's functions, as tasks: by key, in tumbling, hopping, sliding windows and in
sessions.

An update goes on once per batch and row, as with Kafka's cache; with `final` a window says one thing, when it
closes. Windows close as the task's stream time passes their end and the grace period, and their state goes.
What comes for a closed window is late: it is not in that window, and goes to the topic of late records.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from struct import Struct
from typing import Any

from moldau.pipelines.streams.dsl.serdes import Serde
from moldau.pipelines.streams.dsl.windows import TimeWindows, takes_null_values
from moldau.pipelines.streams.tasks.task import Operator, Out, Row, Task
from moldau.pipelines.streams.tasks.values import TimestampedMap
from moldau.pipelines.streams.topology.late import late_headers
from moldau.pipelines.streams.topology.stateful import Aggregate

LONG = Struct(">q")
_STREAM_TIME, _ENDS = b"stream-time", b"ends"


@dataclass(frozen=True, slots=True)
class Functions:
    """The user's functions over bytes: what there is and a new value give what there is then."""

    operation: Aggregate
    key_serde: Serde
    #: One for each input.
    value_serdes: tuple[Serde, ...]
    result_serde: Serde

    def key(self, key: bytes) -> Any:
        return self.key_serde.deserialize("", key)

    def first(self) -> Any:
        """What there is before the first value."""
        if self.operation.kind == "count":
            return 0
        return None if self.operation.initializer is None else self.operation.initializer()

    def add(self, key: Any, row: Row, so_far: Any) -> Any:
        if self.operation.kind == "count":
            return so_far + 1
        value = self.value_serdes[row.port].deserialize(row.topic, row.value, row.headers)
        if self.operation.kind == "reduce":
            return value if so_far is None else self._aggregator()(so_far, value)
        if self.operation.kind == "cogroup":
            return self.operation.aggregators[row.port](key, value, so_far)
        return self._aggregator()(key, value, so_far)

    def merge(self, key: Any, one: Any, two: Any) -> Any:
        if self.operation.kind == "count":
            return one + two
        if self.operation.kind == "reduce":
            return two if one is None else self._aggregator()(one, two)
        if self.operation.merger is None:
            raise ValueError("Sessions are aggregated with a merger")
        return self.operation.merger(key, one, two)

    def result(self, value: Any) -> bytes | None:
        return self.result_serde.serialize("", value)

    def stored(self, value: bytes | None) -> Any:
        return self.result_serde.deserialize("", value)

    def _aggregator(self) -> Callable[..., Any]:
        if self.operation.aggregator is None:
            raise ValueError(f"{self.operation.kind} needs a function")
        return self.operation.aggregator


class Aggregation(Operator):
    """By key alone."""

    maps: tuple[str, ...] = ("rows",)

    def __init__(self, functions: Functions) -> None:
        self.functions = functions

    def open(self, task: Task) -> None:
        super().open(task)
        self.rows = TimestampedMap(task.maps["rows"])
        self.updates: dict[bytes, Out] = {}

    def process(self, row: Row) -> None:
        if row.key is not None and row.value is not None:
            self.add(row.key, row.key, row)

    def add(self, place: bytes, key: bytes, row: Row) -> None:
        """A value to the row at its place in the store, which is also the key of the update."""
        functions, before = self.functions, self.rows.get(place)
        so_far = functions.first() if before.value is None else functions.stored(before.value)
        now = functions.result(functions.add(functions.key(key), row, so_far))
        timestamp = max(before.timestamp, row.timestamp)
        self.rows.put(place, now, timestamp)
        self.update(Out(place, now, timestamp, row.headers))

    def update(self, out: Out) -> None:
        """The last update of a row in a batch goes on, in the order of the last ones."""
        self.updates.pop(out.key or b"", None)
        self.updates[out.key or b""] = out

    def tick(self) -> None:
        for out in self.updates.values():
            self.emit(out)
        self.updates.clear()


class Closing(Aggregation):
    """Windows that close: stream time, and what is due when."""

    maps = ("rows", "task", "due")
    grace_ms: int = 0
    #: Where late records go.
    late_topic: str | None = None
    #: Whether the row at hand is late.
    is_late = False

    def __init__(self, functions: Functions, final: bool) -> None:
        super().__init__(functions)
        self.final = final

    def open(self, task: Task) -> None:
        super().open(task)
        stored = task.maps["task"].get(_STREAM_TIME)
        self.stream_time = -1 if stored is None else int(LONG.unpack(stored)[0])
        ends = task.maps["task"].get(_ENDS)
        self._ends: list[int] = [] if ends is None else list(pickle.loads(ends))
        heapify(self._ends)
        # What closes when, as far as this batch has looked at it, and how many they were before.
        self._due: dict[int, set[bytes]] = {}
        self._stored: dict[int, int] = {}

    def process(self, row: Row) -> None:
        without = row.value is None and not takes_null_values(self.functions.operation.windows)
        if row.key is None or without:
            return
        self.stream_time = max(self.stream_time, row.timestamp)
        self.is_late = False
        self.windowed(row.key, row)
        if self.is_late and self.late_topic is not None:
            headers = late_headers(row.headers, row.topic, row.partition, row.offset)
            self.emit(Out(row.key, row.value, row.timestamp, headers, self.late_topic))
        self.close_windows()

    def windowed(self, key: bytes, row: Row) -> None:
        """Add a row to its windows, and set `is_late` if one of them is closed."""
        raise NotImplementedError

    def watch(self, end: int, place: bytes) -> None:
        """Remember when a window closes."""
        places = self._places(end)
        if not places:
            heappush(self._ends, end)
        places.add(place)

    def _places(self, end: int) -> set[bytes]:
        if end not in self._due:
            stored = self.state["due"].get(LONG.pack(end))
            self._due[end] = set() if stored is None else pickle.loads(stored)
            self._stored[end] = len(self._due[end])
        return self._due[end]

    def is_closed(self, end: int) -> bool:
        return end <= self.stream_time - self.grace_ms

    def close_windows(self) -> None:
        while self._ends and self.is_closed(self._ends[0]):
            end = heappop(self._ends)
            places = sorted(self._places(end))
            self._places(end).clear()
            for place in places:
                self.closed(place, end)

    def closed(self, place: bytes, end: int) -> None:
        """A window's time is up."""
        found = self.rows.get(place)
        if self.final and found.value is not None:
            super().update(Out(place, found.value, found.timestamp))
        self.rows.put(place, None, 0)

    def update(self, out: Out) -> None:
        if not self.final:
            super().update(out)

    def close(self) -> None:
        self.state["task"].put(_STREAM_TIME, LONG.pack(self.stream_time))
        self.state["task"].put(_ENDS, pickle.dumps(set(self._ends)))
        for end, places in self._due.items():
            if not places:
                self.state["due"].delete(LONG.pack(end))
            elif len(places) != self._stored[end]:
                self.state["due"].put(LONG.pack(end), pickle.dumps(places))


class TimeWindowAggregation(Closing):
    """Tumbling and hopping windows. A row's place is its key and the window's start."""

    def __init__(self, functions: Functions, windows: TimeWindows, final: bool) -> None:
        super().__init__(functions, final)
        self.windows = windows
        self.grace_ms = windows.grace_ms

    def windowed(self, key: bytes, row: Row) -> None:
        for start in self.windows.starts(row.timestamp):
            end = start + self.windows.size_ms
            if self.is_closed(end):
                self.is_late = True
            else:
                place = key + LONG.pack(start)
                self.watch(end, place)
                self.add(place, key, row)
