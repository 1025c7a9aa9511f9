"""Aggregates with Python functions, without windows, and what windowed aggregates share with them.

An aggregate emits one update per key and batch, as Kafka Streams does with its record cache.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from moldau.pipelines.streams.dsl.serdes import Serde
from moldau.pipelines.streams.tasks.state import TimestampedMap
from moldau.pipelines.streams.tasks.task import Operator, Out, Row, Task
from moldau.pipelines.streams.topology.stateful import Aggregate


@dataclass(frozen=True, slots=True)
class Functions:
    """The functions of an aggregate, applied to serialized keys and values."""

    operation: Aggregate
    key_serde: Serde
    #: One for each input.
    value_serdes: tuple[Serde, ...]
    result_serde: Serde

    def key(self, key: bytes) -> Any:
        return self.key_serde.deserialize("", key)

    def initial(self) -> Any:
        """Return the aggregate before the first value."""
        if self.operation.kind == "count":
            return 0
        return None if self.operation.initializer is None else self.operation.initializer()

    def add(self, key: Any, row: Row, aggregate: Any) -> Any:
        if self.operation.kind == "count":
            return aggregate + 1
        value = self.value_serdes[row.port].deserialize(row.topic, row.value, row.headers)
        if self.operation.kind == "reduce":
            return value if aggregate is None else self._aggregator()(aggregate, value)
        if self.operation.kind == "cogroup":
            return self.operation.aggregators[row.port](key, value, aggregate)
        return self._aggregator()(key, value, aggregate)

    def merge(self, key: Any, one: Any, two: Any) -> Any:
        if self.operation.kind == "count":
            return one + two
        if self.operation.kind == "reduce":
            return two if one is None else self._aggregator()(one, two)
        if self.operation.merger is None:
            raise ValueError("An aggregate in session windows needs a merger")
        return self.operation.merger(key, one, two)

    def serialize(self, aggregate: Any) -> bytes | None:
        return self.result_serde.serialize("", aggregate)

    def deserialize(self, aggregate: bytes | None) -> Any:
        return self.result_serde.deserialize("", aggregate)

    def _aggregator(self) -> Callable[..., Any]:
        if self.operation.aggregator is None:
            raise ValueError(f"{self.operation.kind} needs a function")
        return self.operation.aggregator


class Updates:
    """The last update of each key in a batch, emitted in the order of these last updates. With `final`, only
    the results of closed windows are emitted."""

    def __init__(self, final: bool = False) -> None:
        self._final = final
        self._updates: dict[bytes, Out] = {}

    def update(self, out: Out) -> None:
        if not self._final:
            self._put(out)

    def result(self, out: Out) -> None:
        """Add the result of a closed window."""
        if self._final:
            self._put(out)

    def _put(self, out: Out) -> None:
        self._updates.pop(out.key or b"", None)
        self._updates[out.key or b""] = out

    def flush(self, emit: Callable[[Out], None]) -> None:
        for out in self._updates.values():
            emit(out)
        self._updates.clear()


class AggregateTable:
    """Aggregates by the keys under which they are stored."""

    def __init__(self, functions: Functions, rows: TimestampedMap) -> None:
        self._functions = functions
        self.rows = rows

    def add(self, stored_key: bytes, key: bytes, row: Row) -> Out:
        """Add a row to the aggregate stored under `stored_key`, and return the update."""
        functions, before = self._functions, self.rows.get(stored_key)
        aggregate = functions.initial() if before.value is None else functions.deserialize(before.value)
        now = functions.serialize(functions.add(functions.key(key), row, aggregate))
        timestamp = max(before.timestamp, row.timestamp)
        self.rows.put(stored_key, now, timestamp)
        return Out(stored_key, now, timestamp, row.headers)


class Aggregation(Operator):
    """Aggregates by key."""

    maps: tuple[str, ...] = ("rows",)
    maps_by_key = maps

    def __init__(self, functions: Functions) -> None:
        self._functions = functions

    def open(self, task: Task) -> None:
        super().open(task)
        self._table = AggregateTable(self._functions, TimestampedMap(task.maps["rows"]))
        self._updates = Updates()

    def process(self, row: Row) -> None:
        if row.key is not None and row.value is not None:
            self._updates.update(self._table.add(row.key, row.key, row))

    def tick(self) -> None:
        self._updates.flush(self.emit)
