"""What a task is made of: rows in, rows out, maps for its state, and the order in which rows are taken.

Kafka Streams takes of all the partitions that a task reads the record with the lowest timestamp, and never
changes the order inside a partition. `in_order` does the same with the rows of a batch.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from heapq import merge
from itertools import groupby
from typing import Protocol

from moldau.client.records import Headers
from moldau.pipelines.streams.errors import failure


@dataclass(slots=True)
class Row:
    """A record on its way into an operator; `port` says which of the operator's inputs it came by."""

    port: int
    key: bytes | None
    value: bytes | None
    timestamp: int
    headers: Headers = ()
    topic: str = ""
    partition: int = 0
    offset: int = 0
    seq: int = 0


@dataclass(slots=True)
class Out:
    """A record that an operator gives on; with a `target` it goes to that topic and nowhere else, with a
    `child` to that operator alone, with a `partition` to that one of the next topic."""

    key: bytes | None
    value: bytes | None
    timestamp: int
    headers: Headers = ()
    target: str | None = None
    child: str | None = None
    partition: int | None = None


class StateMap(Protocol):
    """State of one task under one name."""

    def get(self, key: bytes) -> bytes | None: ...

    def put(self, key: bytes, value: bytes) -> None: ...

    def delete(self, key: bytes) -> None: ...

    def items(self) -> Iterable[tuple[bytes, bytes]]:
        """All of it, in any order."""


@dataclass(frozen=True, slots=True)
class Task:
    """What an operator has to work with during one batch."""

    partition: int
    maps: Mapping[str, StateMap]
    emit: Callable[[Out], None]
    #: The clock on the wall when the batch began.
    now_ms: int


class Operator(ABC):
    """An operator as a task runs it. It is pickled, opened for every batch, and closed after it."""

    #: The names of the maps it needs.
    maps: tuple[str, ...] = ()
    #: Of the node, for messages.
    name = "an operator"

    def open(self, task: Task) -> None:
        self.state = task.maps
        self.emit = task.emit

    @abstractmethod
    def process(self, row: Row) -> None: ...

    def tick(self) -> None:
        """The rows of the batch are done; timers of the clock on the wall may run."""
        return

    def next_tick(self) -> int | None:
        """When it wants to be run although no record comes."""
        return None

    def close(self) -> None:
        """Before the maps are written."""
        return


class CachedMap:
    """A map before another one: each key is read once in a batch, and written once, by `flush`."""

    def __init__(self, below: StateMap) -> None:
        self._below = below
        self._known: dict[bytes, bytes | None] = {}
        self._changed: set[bytes] = set()

    def get(self, key: bytes) -> bytes | None:
        if key not in self._known:
            self._known[key] = self._below.get(key)
        return self._known[key]

    def put(self, key: bytes, value: bytes) -> None:
        self._known[key] = value
        self._changed.add(key)

    def delete(self, key: bytes) -> None:
        self._known[key] = None
        self._changed.add(key)

    def items(self) -> Iterator[tuple[bytes, bytes]]:
        merged = {**dict(self._below.items()), **self._known}
        return iter([(key, value) for key, value in merged.items() if value is not None])

    def flush(self) -> None:
        for key in sorted(self._changed):
            value = self._known[key]
            self._below.delete(key) if value is None else self._below.put(key, value)
        self._changed.clear()


class MemoryMap(dict[bytes, bytes]):
    """State that is nowhere but here."""

    def put(self, key: bytes, value: bytes) -> None:
        self[key] = value

    def delete(self, key: bytes) -> None:
        self.pop(key, None)


def in_order(rows: Iterable[Row]) -> Iterator[Row]:
    """The rows as Kafka Streams would take them."""

    def queue(row: Row) -> tuple[int, str, int]:
        return row.port, row.topic, row.partition

    ordered = sorted(rows, key=lambda row: (*queue(row), row.offset, row.seq))
    queues = [list(each) for _, each in groupby(ordered, key=queue)]
    return merge(*queues, key=lambda row: row.timestamp)


@contextmanager
def _telling(operator: Operator, where: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        raise failure(operator.name, where, error) from error


def run(
    operator: Operator, partition: int, maps: Mapping[str, StateMap], rows: Iterable[Row], now_ms: int
) -> list[Out]:
    """One batch of one task: what comes out, with all of its state written."""
    cached = {name: CachedMap(each) for name, each in maps.items()}
    given: list[Out] = []
    with _telling(operator, "the beginning of a batch"):
        operator.open(Task(partition, cached, given.append, now_ms))
    for row in in_order(rows):
        try:
            operator.process(row)
        except Exception as error:
            raise failure(operator.name, f"{row.topic}-{row.partition}@{row.offset}", error) from error
    with _telling(operator, "a timer or the end of a batch"):
        operator.tick()
        operator.close()
    for each in cached.values():
        each.flush()
    return given
