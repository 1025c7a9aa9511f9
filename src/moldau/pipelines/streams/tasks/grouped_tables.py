"""Grouped tables: regrouping the rows of a table by another key, and aggregating the groups.

`Regroup` stores the table, so that it knows the old value of a changed row. Old and new value are written to
the repartition topic as a `Change`, under the keys that the selector returns for them. `TableAggregation`
subtracts the old value from the aggregate of its key, and adds the new one.

A change has the bytes of Kafka Streams: the new or the old value and a flag, or the length of the new value
as a zigzag varint, both values and a flag.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from moldau.client.serdes import SerializationError
from moldau.pipelines.streams.dsl.serdes import Serde
from moldau.pipelines.streams.tasks.aggregation import Updates
from moldau.pipelines.streams.tasks.state import TimestampedMap
from moldau.pipelines.streams.tasks.task import Operator, Out, Row, Task
from moldau.pipelines.streams.topology.stateful import TableAggregate
from moldau.protocol.primitives import read_uvarint, uvarint

_OLD, _NEW, _BOTH = b"\x00", b"\x01", b"\x02"


@dataclass(frozen=True, slots=True)
class Change:
    """The new and the old value of a row; None if there is none."""

    new: bytes | None
    old: bytes | None


def encode_change(change: Change) -> bytes:
    if change.new is not None and change.old is not None:
        zigzag = len(change.new) << 1
        return uvarint(zigzag) + change.new + change.old + _BOTH
    if change.new is not None:
        return change.new + _NEW
    if change.old is not None:
        return change.old + _OLD
    raise SerializationError("A change must have a new value, an old value, or both")


def decode_change(data: bytes) -> Change:
    body, flag = data[:-1], data[-1:]
    if flag == _NEW:
        return Change(body, None)
    if flag == _OLD:
        return Change(None, body)
    if flag != _BOTH:
        raise SerializationError(
            f"A change must end with the flag 0, 1 or 2, not with {data[-1:].hex() or 'nothing'}"
        )
    zigzag, at = read_uvarint(body, 0)
    end = at + (zigzag >> 1)
    return Change(body[at:end], body[end:])


@dataclass(frozen=True, slots=True)
class RegroupSerdes:
    key: Serde
    value: Serde
    new_key: Serde
    new_value: Serde


class Regroup(Operator):
    """Emits the changes of a table under new keys. `selector` returns the new key and value of a row; if one
    of them is None, the row belongs to no group."""

    maps: tuple[str, ...] = ("table",)
    maps_by_key = maps

    def __init__(self, selector: Callable[[Any, Any], tuple[Any, Any]], serdes: RegroupSerdes) -> None:
        self._selector = selector
        self._serdes = serdes

    def process(self, row: Row) -> None:
        if row.key is None:
            return
        before = TimestampedMap(self.state["table"]).swap(row.key, row.value, row.timestamp)
        old, new = self._pair(row, before), self._pair(row, row.value)
        if old is not None and new is not None and old[0] == new[0]:
            self._emit(row, old[0], Change(new[1], old[1]))
            return
        if old is not None:
            self._emit(row, old[0], Change(None, old[1]))
        if new is not None:
            self._emit(row, new[0], Change(new[1], None))

    def _pair(self, row: Row, value: bytes | None) -> tuple[bytes, bytes] | None:
        if value is None:
            return None
        key, selected = self._selector(
            self._serdes.key.deserialize(row.topic, row.key, row.headers),
            self._serdes.value.deserialize(row.topic, value, row.headers),
        )
        if key is None or selected is None:
            return None
        new_key = self._serdes.new_key.serialize(row.topic, key)
        new_value = self._serdes.new_value.serialize(row.topic, selected)
        return None if new_key is None or new_value is None else (new_key, new_value)

    def _emit(self, row: Row, key: bytes, change: Change) -> None:
        self.emit(Out(key, encode_change(change), row.timestamp, row.headers))


@dataclass(frozen=True, slots=True)
class AggregateFunctions:
    """The functions of an aggregate; `add` and `subtract` take key, value and current aggregate."""

    initial: Callable[[], Any]
    add: Callable[[Any, Any, Any], Any]
    subtract: Callable[[Any, Any, Any], Any]

    @staticmethod
    def of(operation: TableAggregate) -> AggregateFunctions:
        """Return the functions of an aggregate, or of a reduce, where the first value of a key is its
        aggregate."""
        add, subtract = operation.adder, operation.subtractor
        if operation.initializer is not None:
            return AggregateFunctions(operation.initializer, add, subtract)
        return AggregateFunctions(
            lambda: None,
            lambda _, value, aggregate: value if aggregate is None else add(aggregate, value),
            lambda _, value, aggregate: subtract(aggregate, value),
        )


@dataclass(frozen=True, slots=True)
class AggregateSerdes:
    key: Serde
    value: Serde
    aggregate: Serde


class TableAggregation(Operator):
    """Maintains the aggregate of each key, and emits its last update in a batch."""

    maps: tuple[str, ...] = ("aggregates",)
    maps_by_key = maps

    def __init__(self, functions: AggregateFunctions, serdes: AggregateSerdes) -> None:
        self._functions = functions
        self._serdes = serdes

    def open(self, task: Task) -> None:
        super().open(task)
        self._updates = Updates()

    def process(self, row: Row) -> None:
        if row.key is None or row.value is None:
            return
        aggregates = TimestampedMap(self.state["aggregates"])
        before = aggregates.get(row.key)
        change = decode_change(row.value)
        key = self._serdes.key.deserialize(row.topic, row.key, row.headers)
        aggregate = self._serdes.aggregate.deserialize(row.topic, before.value)
        if change.old is not None and aggregate is not None:
            aggregate = self._functions.subtract(key, self._value(row, change.old), aggregate)
        if change.new is not None:
            start = self._functions.initial() if aggregate is None else aggregate
            aggregate = self._functions.add(key, self._value(row, change.new), start)
        timestamp = max(row.timestamp, before.timestamp)
        value = self._serdes.aggregate.serialize(row.topic, aggregate)
        aggregates.put(row.key, value, timestamp)
        self._updates.update(Out(row.key, value, timestamp, row.headers))

    def tick(self) -> None:
        self._updates.flush(self.emit)

    def _value(self, row: Row, data: bytes) -> Any:
        return self._serdes.value.deserialize(row.topic, data, row.headers)
