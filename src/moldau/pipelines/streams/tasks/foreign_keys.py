"""The first two tasks of a foreign-key join (see `dsl.table_joins`); the third is in `foreign_key_results`.

`Subscribe` stores its table, so that it knows the previous foreign key of a changed row. `Lookup` reads
subscriptions at port 0 and the other table at port 1.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from moldau.client.records import Headers
from moldau.pipelines.streams.dsl.serdes import Serde
from moldau.pipelines.streams.tasks.state import TimestampedMap
from moldau.pipelines.streams.tasks.subscriptions import (
    Instruction,
    Place,
    Response,
    Subscription,
    decode_subscription,
    encode_response,
    encode_subscription,
    hash_of,
    split_headers,
    with_place,
)
from moldau.pipelines.streams.tasks.task import Operator, Out, Row, Task

_DELETES = (Instruction.DELETE_KEY_AND_PROPAGATE, Instruction.DELETE_KEY_NO_PROPAGATE)


@dataclass(frozen=True, slots=True)
class SubscribeSerdes:
    key: Serde
    value: Serde
    foreign_key: Serde


class Subscribe(Operator):
    """Emits subscriptions. `extractor` takes key and value and returns the foreign key, or None."""

    maps: tuple[str, ...] = ("table",)
    maps_by_key = maps

    def __init__(self, extractor: Callable[[Any, Any], Any], serdes: SubscribeSerdes, *, left: bool) -> None:
        self._extractor = extractor
        self._serdes = serdes
        self._left = left

    def process(self, row: Row) -> None:
        if row.key is None:
            return
        before = TimestampedMap(self.state["table"]).swap(row.key, row.value, row.timestamp)
        old, new = self._foreign_key(row, before), self._foreign_key(row, row.value)
        if self._left:
            self._left_join(row, before, old, new)
        else:
            self._inner_join(row, old, new)

    def _left_join(self, row: Row, before: bytes | None, old: bytes | None, new: bytes | None) -> None:
        """Subscribe such that every change has a response, even without a foreign key: every row has a
        result."""
        if before is None and row.value is None:
            return
        if old is not None and old != new:
            self._send(row, old, Instruction.DELETE_KEY_NO_PROPAGATE)
        self._send(row, new, Instruction.PROPAGATE_NULL_IF_NO_FK_VAL_AVAILABLE)

    def _inner_join(self, row: Row, old: bytes | None, new: bytes | None) -> None:
        if new is None:
            if old is not None:
                self._send(row, old, Instruction.DELETE_KEY_AND_PROPAGATE)
        elif old is None or old == new:
            self._send(row, new, Instruction.PROPAGATE_ONLY_IF_FK_VAL_AVAILABLE)
        else:
            self._send(row, old, Instruction.DELETE_KEY_NO_PROPAGATE)
            self._send(row, new, Instruction.PROPAGATE_NULL_IF_NO_FK_VAL_AVAILABLE)

    def _foreign_key(self, row: Row, value: bytes | None) -> bytes | None:
        if value is None:
            return None
        key = self._serdes.key.deserialize(row.topic, row.key, row.headers)
        found = self._extractor(key, self._serdes.value.deserialize(row.topic, value, row.headers))
        return self._serdes.foreign_key.serialize(row.topic, found)

    def _send(self, row: Row, foreign_key: bytes | None, instruction: Instruction) -> None:
        sent = Subscription(hash_of(row.value), instruction, row.key or b"", row.partition)
        headers = with_place(row.headers, (row.offset, row.seq))
        self.emit(Out(foreign_key, encode_subscription(sent), row.timestamp, headers))


class _Subscriber(NamedTuple):
    """The content of a response to a subscriber. Subscribers are pickled into state, so this class must keep
    its name and fields."""

    hash: bytes | None
    partition: int
    place: Place


class Lookup(Operator):
    """Emits responses. All subscriptions to a key are stored as one entry, by the keys of the subscribers."""

    maps: tuple[str, ...] = ("table", "subscriptions")

    def open(self, task: Task) -> None:
        super().open(task)
        self._table = TimestampedMap(task.maps["table"])
        #: The subscribers used in this batch, by foreign key.
        self._subscribers: dict[bytes, dict[bytes, _Subscriber]] = {}
        self._changed: set[bytes] = set()

    def process(self, row: Row) -> None:
        if row.port == 1:
            self._update_row(row)
        elif row.value is not None:
            self._subscribe(row, decode_subscription(row.value))

    def _update_row(self, row: Row) -> None:
        if row.key is None:
            return
        self._table.put(row.key, row.value, row.timestamp)
        for key, each in sorted(self._subscribers_of(row.key).items()):
            headers = with_place(row.headers, each.place)
            self._respond(key, Response(each.hash, row.value), each.partition, row.timestamp, headers)

    def _subscribe(self, row: Row, sent: Subscription) -> None:
        always_responds = sent.instruction is Instruction.PROPAGATE_NULL_IF_NO_FK_VAL_AVAILABLE
        if row.key is not None:
            self._store(row.key, sent, split_headers(row.headers)[0])
        elif not always_responds:
            return
        found = None if row.key is None else self._table.get(row.key)
        value = None if found is None else found.value
        timestamp = row.timestamp if found is None else max(row.timestamp, found.timestamp)
        if sent.instruction is Instruction.DELETE_KEY_AND_PROPAGATE:
            value = None
        elif not always_responds and (sent.instruction in _DELETES or value is None):
            return
        self._respond(sent.key, Response(sent.hash, value), sent.partition, timestamp, row.headers)

    def _store(self, foreign_key: bytes, sent: Subscription, place: Place) -> None:
        subscribers = self._subscribers_of(foreign_key)
        if sent.instruction in _DELETES:
            subscribers.pop(sent.key, None)
        else:
            subscribers[sent.key] = _Subscriber(sent.hash, sent.partition, place)
        self._changed.add(foreign_key)

    def _subscribers_of(self, foreign_key: bytes) -> dict[bytes, _Subscriber]:
        if foreign_key not in self._subscribers:
            stored = self.state["subscriptions"].get(foreign_key)
            self._subscribers[foreign_key] = {} if stored is None else pickle.loads(stored)
        return self._subscribers[foreign_key]

    def _respond(
        self, key: bytes, response: Response, partition: int, timestamp: int, headers: Headers
    ) -> None:
        self.emit(Out(key, encode_response(response), timestamp, headers, partition=partition))

    def close(self) -> None:
        for foreign_key in sorted(self._changed):
            subscribers = self._subscribers[foreign_key]
            if subscribers:
                self.state["subscriptions"].put(foreign_key, pickle.dumps(subscribers))
            else:
                self.state["subscriptions"].delete(foreign_key)
