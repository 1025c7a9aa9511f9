"""The last task of a join of tables by a foreign key: rows and the responses to them become results.

`Resolve` has the first table at port 0 and responses at port 1. In Kafka Streams it is in one task with
`Subscribe`, so that a row is always known when its response comes, and seldom a newer one. Here each of them
reads the table at its own pace, and many changes may come at once:

- A header says which record of the table a response is about; it waits until that record has been read.
- A response to a value that is no longer there is not used, as the hash tells: the later value has its own.
  In an inner join that finds nothing it has none; so what says that nothing is found ends the result that
  there is from that record or an earlier one.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass

from moldau.client.records import Headers
from moldau.pipelines.streams.tasks.subscriptions import (
    NOWHERE,
    Place,
    Response,
    decode_response,
    hash_of,
    packed,
    split_headers,
    unpacked,
)
from moldau.pipelines.streams.tasks.table_joins import Joiner, JoinSerdes
from moldau.pipelines.streams.tasks.task import Operator, Out, Row, Task
from moldau.pipelines.streams.tasks.values import TimestampedMap

#: The place of the last row that a task has read, in its own state.
_READ = b"read"


@dataclass(frozen=True, slots=True)
class _Answer:
    """A response, and which row it is about."""

    response: Response
    place: Place
    timestamp: int
    headers: Headers
    topic: str


class Resolve(Operator):
    """The result of a row and the response to it."""

    maps: tuple[str, ...] = ("table", "waiting", "results", "task")

    def __init__(self, joiner: Joiner, serdes: JoinSerdes, *, left: bool) -> None:
        self._joiner = joiner
        self._serdes = serdes
        self._left = left

    def open(self, task: Task) -> None:
        super().open(task)
        self._table = TimestampedMap(task.maps["table"])
        self._read = unpacked(task.maps["task"].get(_READ))

    def process(self, row: Row) -> None:
        if row.key is None:
            return
        if row.port == 0:
            self._table.put(row.key, row.value, row.timestamp)
            self._read = (row.offset, row.seq)
            self._answer_waiting(row.key)
        elif row.value is not None:
            place, headers = split_headers(row.headers)
            self._answer(
                row.key, _Answer(decode_response(row.value), place, row.timestamp, headers, row.topic)
            )

    def close(self) -> None:
        if self._read != NOWHERE:
            self.state["task"].put(_READ, packed(self._read))

    def _answer(self, key: bytes, answer: _Answer) -> None:
        if answer.place <= self._read:
            self._use(key, answer)
            return
        # Responses about one row come from one task: a later one of them takes the place of an earlier one.
        waiting = self._waiting(key)
        waiting.pop(answer.place, None)
        self._wait(key, {**waiting, answer.place: answer})

    def _answer_waiting(self, key: bytes) -> None:
        waiting = self._waiting(key)
        if not waiting:
            return
        self._wait(key, {place: each for place, each in waiting.items() if place > self._read})
        for place, each in waiting.items():
            if place <= self._read:
                self._use(key, each)

    def _waiting(self, key: bytes) -> dict[Place, _Answer]:
        stored = self.state["waiting"].get(key)
        return {} if stored is None else pickle.loads(stored)

    def _wait(self, key: bytes, waiting: dict[Place, _Answer]) -> None:
        if waiting:
            self.state["waiting"].put(key, pickle.dumps(waiting))
        else:
            self.state["waiting"].delete(key)

    def _use(self, key: bytes, answer: _Answer) -> None:
        current, other = self._table.get(key).value, answer.response.value
        result = None
        if hash_of(current) != answer.response.hash:
            if not self._ends_result(key, answer):
                return
        elif other is not None or (self._left and current is not None):
            result = self._serdes.joined(self._joiner, answer.topic, key, current, other)
        self._note(key, None if result is None else answer.place)
        self.emit(Out(key, result, answer.timestamp, answer.headers))

    def _ends_result(self, key: bytes, answer: _Answer) -> bool:
        """Whether a response to an earlier value takes away what is there."""
        there = self.state["results"].get(key)
        return answer.response.value is None and there is not None and unpacked(there) <= answer.place

    def _note(self, key: bytes, place: Place | None) -> None:
        """For which record of a row there is a result. In a left join every value has a response."""
        if self._left:
            return
        if place is None:
            self.state["results"].delete(key)
        else:
            self.state["results"].put(key, packed(place))
