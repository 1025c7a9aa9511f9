"""Tasks: their input and output rows, the base class of operators, and the processing of a batch.

As in Kafka Streams, a task processes the record with the lowest timestamp among the next records of its
partitions, and never reorders records within a partition (`in_order`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from heapq import merge
from itertools import groupby

from moldau.client.records import Headers
from moldau.pipelines.streams.errors import failure
from moldau.pipelines.streams.tasks.state import CachedMap, StateMap, StateStore


@dataclass(slots=True)
class Row:
    """An input record of an operator; `port` is the number of the input."""

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
    """A record that an operator emits. With a `target` it is written to that topic only, with a `child` it is
    forwarded to that child only, with a `partition` it is written to that partition of the next topic."""

    key: bytes | None
    value: bytes | None
    timestamp: int
    headers: Headers = ()
    target: str | None = None
    child: str | None = None
    partition: int | None = None


@dataclass(frozen=True, slots=True)
class Task:
    """The partition, state and output of an operator during one batch."""

    partition: int
    maps: Mapping[str, StateMap]
    emit: Callable[[Out], None]
    #: Wall-clock time at the start of the batch.
    now_ms: int


class Operator(ABC):
    """An operator of a task. It is pickled, opened for every batch, and closed after it."""

    #: The names of its state maps, which are stored in checkpoints.
    maps: tuple[str, ...] = ()
    #: Those of the maps that rows read by their own key: what a batch needs of them is read at once.
    maps_by_key: tuple[str, ...] = ()
    #: The name of the node, for error messages.
    name = "an operator"

    def open(self, task: Task) -> None:
        self.state = task.maps
        self.emit = task.emit

    def reads(self, row: Row) -> bool:
        """Whether a row reads the entry of its key in `maps_by_key`."""
        return row.key is not None

    @abstractmethod
    def process(self, row: Row) -> None: ...

    def tick(self) -> None:
        """Called after the rows of a batch; wall-clock punctuators run here."""
        return

    def next_tick(self) -> int | None:
        """Return the time at which `tick` must be called even if no record arrives."""
        return None

    def close(self) -> None:
        """Called before the state maps are written."""
        return


def in_order(rows: Iterable[Row]) -> Iterator[Row]:
    """Return the rows in the order in which Kafka Streams would process them."""

    def queue(row: Row) -> tuple[int, str, int]:
        return row.port, row.topic, row.partition

    ordered = sorted(rows, key=lambda row: (*queue(row), row.offset, row.seq))
    queues = [list(each) for _, each in groupby(ordered, key=queue)]
    return merge(*queues, key=lambda row: row.timestamp)


@contextmanager
def _failing_at(operator: Operator, where: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        raise failure(operator.name, where, error) from error


def run(
    operator: Operator, partition: int, maps: Mapping[str, StateStore], rows: Sequence[Row], now_ms: int
) -> list[Out]:
    """Process one batch of one task: write its state, and return its output."""
    cached = {name: CachedMap(each) for name, each in maps.items()}
    if operator.maps_by_key:
        keys = {row.key for row in rows if row.key is not None and operator.reads(row)}
        for name in operator.maps_by_key:
            cached[name].load(keys)
    given: list[Out] = []
    with _failing_at(operator, "the start of a batch"):
        operator.open(Task(partition, cached, given.append, now_ms))
    for row in in_order(rows):
        try:
            operator.process(row)
        except Exception as error:
            raise failure(operator.name, f"{row.topic}-{row.partition}@{row.offset}", error) from error
    with _failing_at(operator, "a punctuator or the end of a batch"):
        operator.tick()
        operator.close()
    for each in cached.values():
        each.flush()
    return given
