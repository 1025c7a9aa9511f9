"""Joins with tables: stream-table joins and table-table joins.

`Lookup` reads the stream at port 0 and the table at port 1. `TableJoin` stores both tables; whenever one of
them changes, the result of that key is computed again. As in Kafka Streams, a result that no longer exists is
deleted with a tombstone, even if there may have been none.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from moldau.pipelines.streams.dsl.serdes import Serde
from moldau.pipelines.streams.tasks.state import TimestampedMap
from moldau.pipelines.streams.tasks.task import Operator, Out, Row, Task
from moldau.pipelines.streams.topology.stateful import JoinKind

#: Takes key and two values.
Joiner = Callable[[Any, Any, Any], Any]


@dataclass(frozen=True, slots=True)
class JoinSerdes:
    """The serdes of a join's inputs and of its result."""

    key: Serde
    left: Serde
    right: Serde
    result: Serde

    def joined(
        self, joiner: Joiner, topic: str, key: bytes | None, left: bytes | None, right: bytes | None
    ) -> bytes | None:
        result = joiner(
            self.key.deserialize(topic, key),
            self.left.deserialize(topic, left),
            self.right.deserialize(topic, right),
        )
        return self.result.serialize(topic, result)


class Lookup(Operator):
    """A stream-table join. A record of the stream without a value joins nothing, nor does one without a key
    in an inner join."""

    maps: tuple[str, ...] = ("table",)
    maps_by_key = maps

    def __init__(self, joiner: Joiner, serdes: JoinSerdes, *, left: bool) -> None:
        self._joiner = joiner
        self._serdes = serdes
        self._left = left

    def reads(self, row: Row) -> bool:
        return row.port == 0

    def process(self, row: Row) -> None:
        table = TimestampedMap(self.state["table"])
        if row.port == 1:
            if row.key is not None:
                table.put(row.key, row.value, row.timestamp)
            return
        if row.value is None or (row.key is None and not self._left):
            return
        found = None if row.key is None else table.get(row.key).value
        if found is not None or self._left:
            value = self._serdes.joined(self._joiner, row.topic, row.key, row.value, found)
            self.emit(Out(row.key, value, row.timestamp, row.headers))


class TableJoin(Operator):
    """A table-table join."""

    maps: tuple[str, ...] = ("left", "right")
    maps_by_key = maps

    def __init__(self, kind: JoinKind, joiner: Joiner, serdes: JoinSerdes) -> None:
        self._kind = kind
        self._joiner = joiner
        self._serdes = serdes

    def open(self, task: Task) -> None:
        super().open(task)
        self._tables = (TimestampedMap(task.maps["left"]), TimestampedMap(task.maps["right"]))

    def process(self, row: Row) -> None:
        if row.key is None:
            return
        before = self._tables[row.port].swap(row.key, row.value, row.timestamp)
        other = self._tables[1 - row.port].get(row.key)
        if other.value is None and (self._needed(1 - row.port) or (row.value is None and before is None)):
            return
        pair = (row.value, other.value)
        left, right = pair if row.port == 0 else pair[::-1]
        there = not (left is None and (right is None or self._needed(0)))
        there = there and not (right is None and self._needed(1))
        value = self._serdes.joined(self._joiner, row.topic, row.key, left, right) if there else None
        self.emit(Out(row.key, value, max(row.timestamp, other.timestamp), row.headers))

    def _needed(self, port: int) -> bool:
        """Whether the result requires a value of that table."""
        return self._kind == "inner" or (self._kind == "left" and port == 0)
