"""The last task of a foreign-key join: joins each row with the response to its subscription.

`Resolve` reads the first table at port 0 and responses at port 1. In Kafka Streams it runs in the same task
as `Subscribe`, so that a row is always known when its response arrives, and has seldom changed since. Here
the two read the table independently, and a response may be ahead of the row, or far behind it:

- A header identifies the record of the table that a response is for; the response waits until that record is
  read.
- A response for a value that has been replaced is ignored, as the hash shows: the new value has a response of
  its own. In an inner join without a match there is no such response. Therefore a response without a match
  deletes the result of that record or of an earlier one.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass

from moldau.client.records import Headers
from moldau.pipelines.streams.tasks.state import TimestampedMap
from moldau.pipelines.streams.tasks.subscriptions import (
    NO_PLACE,
    Place,
    Response,
    decode_place,
    decode_response,
    encode_place,
    hash_of,
    split_headers,
)
from moldau.pipelines.streams.tasks.table_joins import Joiner, JoinSerdes
from moldau.pipelines.streams.tasks.task import Operator, Out, Row, Task

#: The state key of the place of the last row that the task has read.
_READ = b"read"


@dataclass(frozen=True, slots=True)
class _Answer:
    """A response, and the place of its row. Answers are pickled into state, so this class must keep its name
    and fields."""

    response: Response
    place: Place
    timestamp: int
    headers: Headers
    topic: str


class Resolve(Operator):
    """Joins rows with the responses to their subscriptions."""

    maps: tuple[str, ...] = ("table", "waiting", "results", "task")

    def __init__(self, joiner: Joiner, serdes: JoinSerdes, *, left: bool) -> None:
        self._joiner = joiner
        self._serdes = serdes
        self._left = left

    def open(self, task: Task) -> None:
        super().open(task)
        self._table = TimestampedMap(task.maps["table"])
        self._read = decode_place(task.maps["task"].get(_READ))

    def process(self, row: Row) -> None:
        if row.key is None:
            return
        if row.port == 0:
            self._table.put(row.key, row.value, row.timestamp)
            self._read = (row.offset, row.seq)
            self._apply_waiting(row.key)
        elif row.value is not None:
            place, headers = split_headers(row.headers)
            self._receive(
                row.key, _Answer(decode_response(row.value), place, row.timestamp, headers, row.topic)
            )

    def close(self) -> None:
        if self._read != NO_PLACE:
            self.state["task"].put(_READ, encode_place(self._read))

    def _receive(self, key: bytes, answer: _Answer) -> None:
        if answer.place <= self._read:
            self._apply(key, answer)
            return
        # All responses for one record are written by one task, so a later one replaces an earlier one.
        waiting = self._waiting(key)
        waiting.pop(answer.place, None)
        self._store_waiting(key, {**waiting, answer.place: answer})

    def _apply_waiting(self, key: bytes) -> None:
        waiting = self._waiting(key)
        if not waiting:
            return
        self._store_waiting(key, {place: each for place, each in waiting.items() if place > self._read})
        for place, each in waiting.items():
            if place <= self._read:
                self._apply(key, each)

    def _waiting(self, key: bytes) -> dict[Place, _Answer]:
        stored = self.state["waiting"].get(key)
        return {} if stored is None else pickle.loads(stored)

    def _store_waiting(self, key: bytes, waiting: dict[Place, _Answer]) -> None:
        if waiting:
            self.state["waiting"].put(key, pickle.dumps(waiting))
        else:
            self.state["waiting"].delete(key)

    def _apply(self, key: bytes, answer: _Answer) -> None:
        current, other = self._table.get(key).value, answer.response.value
        result = None
        if hash_of(current) != answer.response.hash:
            if not self._deletes_result(key, answer):
                return
        elif other is not None or (self._left and current is not None):
            result = self._serdes.joined(self._joiner, answer.topic, key, current, other)
        self._store_result_place(key, None if result is None else answer.place)
        self.emit(Out(key, result, answer.timestamp, answer.headers))

    def _deletes_result(self, key: bytes, answer: _Answer) -> bool:
        """Whether a response for an earlier value deletes the current result."""
        stored = self.state["results"].get(key)
        return answer.response.value is None and stored is not None and decode_place(stored) <= answer.place

    def _store_result_place(self, key: bytes, place: Place | None) -> None:
        """Store the place of the record that the current result is for. A left join does not need it, because
        every value has a response."""
        if self._left:
            return
        if place is None:
            self.state["results"].delete(key)
        else:
            self.state["results"].put(key, encode_place(place))
