"""Grouping a table anew, and aggregates of such groups, which also take back what a row had added before.

`Regroup` remembers the table, so that it can say what a changed row was before: old and new value go to the
repartition topic under the keys that the user's function gives them, the old one first. `TableAggregate`
takes the old value out of the aggregate of its key and the new one in.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from moldau.pipelines.streams.dsl.serdes import Serde
from moldau.pipelines.streams.tasks.changes import Change, decode_change, encode_change
from moldau.pipelines.streams.tasks.task import Operator, Out, Row
from moldau.pipelines.streams.tasks.values import TimestampedMap


@dataclass(frozen=True, slots=True)
class RegroupSerdes:
    key: Serde
    value: Serde
    new_key: Serde
    new_value: Serde


class Regroup(Operator):
    """`selector` gives the pair of new key and value of a row; None in either of them leaves it out."""

    maps: tuple[str, ...] = ("table",)

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
    """All of them take and give objects; `add` and `subtract` are called with key, value and aggregate."""

    initial: Callable[[], Any]
    add: Callable[[Any, Any, Any], Any]
    subtract: Callable[[Any, Any, Any], Any]

    @staticmethod
    def of_reducers(
        add: Callable[[Any, Any], Any], subtract: Callable[[Any, Any], Any]
    ) -> AggregateFunctions:
        """A reduce: the first value of a key is its aggregate."""
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


class TableAggregate(Operator):
    """The aggregate of each key, as a table's updates."""

    maps: tuple[str, ...] = ("aggregates",)

    def __init__(self, functions: AggregateFunctions, serdes: AggregateSerdes) -> None:
        self._functions = functions
        self._serdes = serdes

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
        self.emit(Out(row.key, value, timestamp, row.headers))

    def _value(self, row: Row, data: bytes) -> Any:
        return self._serdes.value.deserialize(row.topic, data, row.headers)
