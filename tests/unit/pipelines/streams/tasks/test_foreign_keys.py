"""Foreign-key joins: the three tasks write the records that Kafka Streams has written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from moldau.pipelines.streams.tasks.foreign_key_results import Resolve
from moldau.pipelines.streams.tasks.foreign_keys import Lookup, Subscribe, SubscribeSerdes
from moldau.pipelines.streams.tasks.subscriptions import (
    Instruction,
    Response,
    Subscription,
    decode_response,
    encode_subscription,
    hash_of,
)
from moldau.pipelines.streams.tasks.table_joins import JoinSerdes
from moldau.pipelines.streams.tasks.task import Out, Row
from tests.harness.streams.inputs import inputs
from tests.harness.streams.results import comparable, recorded
from tests.harness.streams.scenes import TEXT, other_key, together
from tests.unit.pipelines.streams.tasks.task_run import TaskRun, as_written


def joined(_key: Any, one: Any, two: Any) -> str:
    return together(one, two)


class Join:
    """The three tasks of a foreign-key join."""

    def __init__(self, *, left: bool) -> None:
        serdes = SubscribeSerdes(TEXT, TEXT, TEXT)
        self.subscribe = TaskRun(Subscribe(lambda key, value: other_key(value), serdes, left=left))
        self.lookup = TaskRun(Lookup())
        self.resolve = TaskRun(Resolve(joined, JoinSerdes(TEXT, TEXT, TEXT, TEXT), left=left))

    def batch(self, rows: Sequence[Row]) -> list[Out]:
        """Process rows of the first table (port 0) and of the other table (port 1)."""
        own = [row for row in rows if row.port == 0]
        subscriptions = _rows(0, self.subscribe.rows(own))
        responses = _rows(1, self.lookup.rows([*subscriptions, *(row for row in rows if row.port == 1)]))
        return self.resolve.rows([*own, *responses])


def _rows(port: int, given: Sequence[Out]) -> list[Row]:
    return [
        Row(port, each.key, each.value, each.timestamp, each.headers, "between", offset=place)
        for place, each in enumerate(given)
    ]


@pytest.mark.parametrize("size", [1, 7, 1000])
@pytest.mark.parametrize("scene", ["foreign-join", "foreign-left-join"])
def test_results_are_those_recorded_from_kafka_streams(scene: str, size: int) -> None:
    join, given = Join(left=scene == "foreign-left-join"), []
    rows = [
        Row(
            0 if record.topic.endswith("left") else 1,
            (record.key or "").encode(),
            None if record.value is None else record.value.encode(),
            record.timestamp,
            topic=record.topic,
            offset=place,
        )
        for place, record in enumerate(inputs(scene))
    ]
    for begin in range(0, len(rows), size):
        given += join.batch(rows[begin : begin + size])
    assert comparable(scene, as_written(scene, given)) == recorded()[scene]


def row(value: str | None, offset: int) -> Row:
    return Row(0, b"k", None if value is None else value.encode(), offset, offset=offset)


def test_row_that_is_deleted_and_inserted_again_has_no_result_without_a_match() -> None:
    join = Join(left=False)
    assert join.batch([Row(1, b"b", b"x", 1, offset=1)]) == []
    own = [Row(0, b"k", value, at, offset=at) for at, value in ((2, b"v1"), (3, None), (5, b"v1"))]
    given = join.batch([*own, Row(1, b"b", None, 4, offset=2)])
    assert [out.value for out in given][-1:] in ([], [None])
    assert join.resolve.maps["results"] == {}


def test_result_has_the_headers_of_the_record_that_caused_it() -> None:
    join = Join(left=False)
    own = Row(0, b"k", b"v1", 1, [("of", b"row")], offset=1)
    (made,) = join.batch([own, Row(1, b"b", b"x", 0, [("of", b"other")], offset=1)])
    assert list(made.headers) == [("of", b"row")]
    (changed,) = join.batch([Row(1, b"b", b"y", 2, [("of", b"other")], offset=2)])
    assert list(changed.headers) == [("of", b"other")]


def test_changed_row_is_sent_to_the_partitions_of_its_subscribers() -> None:
    run = TaskRun(Lookup())
    only = Instruction.PROPAGATE_ONLY_IF_FK_VAL_AVAILABLE
    sent = [
        encode_subscription(Subscription(hash_of(key), only, key, place))
        for place, key in enumerate((b"one", b"two"))
    ]
    assert run.rows([Row(0, b"f", each, 5) for each in sent]) == []
    responses = run.rows([Row(1, b"f", b"new", 9)])
    assert [(out.key, out.partition, out.timestamp) for out in responses] == [(b"one", 0, 9), (b"two", 1, 9)]
    assert [decode_response(out.value or b"").value for out in responses] == [b"new", b"new"]
    gone = Subscription(None, Instruction.DELETE_KEY_AND_PROPAGATE, b"one", 0)
    (answer,) = run.rows([Row(0, b"f", encode_subscription(gone), 10)])
    assert decode_response(answer.value or b"") == Response(None, None)
    assert [out.key for out in run.rows([Row(1, b"f", None, 11)])] == [b"two"]


class Log:
    """A partition with several independent readers."""

    def __init__(self) -> None:
        self._rows: list[Row] = []
        self._read: Counter[str] = Counter()

    def add(self, row: Row) -> None:
        self._rows.append(replace(row, offset=len(self._rows)))

    def take(self, reader: str, most: int) -> list[Row]:
        taken = self._rows[self._read[reader] :][:most]
        self._read[reader] += len(taken)
        return taken


class IndependentTasks:
    """A join whose other table has two partitions, and whose tasks run independently."""

    def __init__(self, random: Random, *, left: bool) -> None:
        self._random = random
        self._parts = Join(left=left)
        self._lookups = (self._parts.lookup, TaskRun(Lookup()))
        self.own, self._responses = Log(), Log()
        self.others, self._subscriptions = (Log(), Log()), (Log(), Log())
        self.results: dict[bytes, bytes] = {}

    def run(self, part: int, most: int) -> bool:
        """Run one task. Return whether it had records to process."""
        if part == 0:
            rows = self.own.take("subscribe", most)
            for out in self._parts.subscribe.rows(rows):
                place = self._random.randrange(2) if out.key is None else out.key[0] % 2
                self._subscriptions[place].add(
                    Row(0, out.key, out.value, out.timestamp, out.headers, "subscriptions")
                )
        elif part == 1:
            rows = [*self.own.take("resolve", most), *self._responses.take("", self._random.randrange(4) + 1)]
            for out in self._parts.resolve.rows(rows):
                self.results.pop(out.key or b"", None)
                if out.value is not None:
                    self.results[out.key or b""] = out.value
        else:
            at = part - 2
            rows = [*self._subscriptions[at].take("", most), *self.others[at].take("", most)]
            for out in self._lookups[at].rows(rows):
                self._responses.add(Row(1, out.key, out.value, out.timestamp, out.headers, "responses"))
        return bool(rows)


@pytest.mark.parametrize("left", [False, True])
def test_result_is_correct_whichever_task_is_ahead(left: bool) -> None:
    for seed in range(200):
        random = Random(seed)
        join = IndependentTasks(random, left=left)
        rows: dict[bytes, bytes | None] = {}
        others: dict[bytes, bytes | None] = {}
        for step in range(40):
            if random.random() < 0.6:
                key, value = random.choice([b"one", b"two"]), f"v{random.randrange(7)}"
                rows[key] = None if random.random() < 0.2 else value.encode()
                join.own.add(Row(0, key, rows[key], random.randrange(100), topic="own"))
            else:
                key = random.choice([b"a", b"b", b"c", b"d"])
                others[key] = None if random.random() < 0.4 else f"o{step}".encode()
                join.others[key[0] % 2].add(Row(1, key, others[key], random.randrange(100), topic="others"))
            join.run(random.randrange(4), random.randrange(4) + 1)
        while any(join.run(part, 100) for part in range(4)):
            pass
        assert join.results == wanted(rows, others, left=left), f"seed {seed}"


def wanted(
    rows: Mapping[bytes, bytes | None], others: Mapping[bytes, bytes | None], *, left: bool
) -> dict[bytes, bytes]:
    results = {}
    for key, value in rows.items():
        if value is not None:
            found = others.get((other_key(value.decode()) or "").encode())
            if left or found is not None:
                results[key] = together(value.decode(), None if found is None else found.decode()).encode()
    return results
