"""Joins of tables by foreign keys: the three tasks together give what Kafka Streams gave, in its bytes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from moldau.client.serdes import SerializationError
from moldau.pipelines.streams.tasks.foreign_key_results import Resolve
from moldau.pipelines.streams.tasks.foreign_keys import Lookup, Subscribe, SubscribeSerdes
from moldau.pipelines.streams.tasks.subscriptions import (
    Instruction,
    Response,
    Subscription,
    decode_response,
    decode_subscription,
    encode_response,
    encode_subscription,
    hash_of,
    with_place,
)
from moldau.pipelines.streams.tasks.table_joins import JoinSerdes
from moldau.pipelines.streams.tasks.task import Out, Row
from tests.harness.streams.inputs import inputs
from tests.harness.streams.results import comparable, recorded
from tests.harness.streams.scenes import TEXT, other_key, together
from tests.unit.pipelines.streams.tasks.task_runs import TaskRun, as_written, texts


def joined(_key: Any, one: Any, two: Any) -> str:
    return together(one, two)


class Join:
    """The operators with their topics between them."""

    def __init__(self, *, left: bool) -> None:
        serdes = SubscribeSerdes(TEXT, TEXT, TEXT)
        self.subscribe = TaskRun(Subscribe(lambda key, value: other_key(value), serdes, left=left))
        self.lookup = TaskRun(Lookup())
        self.resolve = TaskRun(Resolve(joined, JoinSerdes(TEXT, TEXT, TEXT, TEXT), left=left))

    def batch(self, rows: Sequence[Row]) -> list[Out]:
        """Port 0 are the rows of the table, port 1 those of the other one."""
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
def test_the_table_is_that_of_kafka_streams(scene: str, size: int) -> None:
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


def resolving(*, left: bool = False) -> TaskRun:
    return TaskRun(Resolve(joined, JoinSerdes(TEXT, TEXT, TEXT, TEXT), left=left))


def row(value: str | None, offset: int) -> Row:
    return Row(0, b"k", None if value is None else value.encode(), offset, offset=offset)


def response(to: Row, value: str | None, offset: int, timestamp: int = 50) -> Row:
    """The `offset`-th response; `value` is the other table's."""
    data = encode_response(Response(hash_of(to.value), None if value is None else value.encode()))
    return Row(1, b"k", data, timestamp, with_place([], (to.offset, 0)), offset=offset)


def test_a_response_waits_for_the_row_that_it_answers() -> None:
    """The row's topic and that of responses are read by themselves, so the answer may be first."""
    run = resolving()
    answer = response(row("v1", 5), "x", 0, 7)
    assert run.rows([answer]) == []
    assert run.rows([row("v0", 4)]) == []
    assert texts(run.rows([row("v1", 5)])) == [("k", "v1+x", 7)]
    assert run.maps["waiting"] == {}
    assert run.rows([row("v2", 8), replace(answer, offset=1, timestamp=9)]) == []
    assert run.maps["waiting"] == {}


@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("order", [(0, 1, 2), (0, 2, 1), (1, 0, 2)])
def test_responses_of_several_tasks_wait_each_for_its_row(order: Sequence[int], left: bool) -> None:
    """A foreign key changes and changes back: the two keys are in different partitions of the other table,
    whose tasks answer in any order."""
    run = resolving(left=left)
    rows = [row("v1", 1), row("v2", 2), row("v1", 3)]
    answers = [
        response(each, found, place)
        for each, found, place in zip(rows, ["a", "b", "new"], order, strict=True)
    ]
    assert run.rows(answers) == []
    given = [out for each in rows for out in run.rows([each])]
    assert texts(given)[-1][:2] == ("k", "v1+new")
    assert run.maps["waiting"] == {}


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_rows_that_are_far_ahead_use_the_response_to_the_last(order: Sequence[int]) -> None:
    run = resolving()
    one, two = row("v1", 1), row("v2", 2)
    given = run.rows([one, two, response(one, "a", order[0]), response(two, "b", order[1])])
    assert texts(given) == [("k", "v2+b", 50)]


def test_a_result_ends_though_its_row_has_changed_before_that_was_said() -> None:
    """Nobody answers to the new value, because nothing is found for it."""
    run = resolving()
    one = row("v1", 1)
    assert texts(run.rows([one, response(one, "x", 0)])) == [("k", "v1+x", 50)]
    assert run.rows([row("v2", 2)]) == []
    assert texts(run.rows([response(one, None, 1)])) == [("k", None, 50)]
    assert run.maps["results"] == {}
    assert run.rows([response(one, None, 2)]) == []


def test_a_result_that_has_come_meanwhile_is_not_ended_by_what_came_before_it() -> None:
    run = resolving()
    one, two = row("v1", 1), row("v2", 2)
    assert len(run.rows([one, two, response(two, "b", 0)])) == 1
    assert run.rows([response(one, None, 1)]) == []


def test_a_row_that_is_deleted_and_comes_again_has_no_result_if_nothing_is_found() -> None:
    join = Join(left=False)
    assert join.batch([Row(1, b"b", b"x", 1, offset=1)]) == []
    own = [Row(0, b"k", value, at, offset=at) for at, value in ((2, b"v1"), (3, None), (5, b"v1"))]
    given = join.batch([*own, Row(1, b"b", None, 4, offset=2)])
    assert [out.value for out in given][-1:] in ([], [None])
    assert join.resolve.maps["results"] == {}


def test_results_have_the_headers_of_what_caused_them() -> None:
    join = Join(left=False)
    own = Row(0, b"k", b"v1", 1, [("of", b"row")], offset=1)
    (made,) = join.batch([own, Row(1, b"b", b"x", 0, [("of", b"other")], offset=1)])
    assert list(made.headers) == [("of", b"row")]
    (changed,) = join.batch([Row(1, b"b", b"y", 2, [("of", b"other")], offset=2)])
    assert list(changed.headers) == [("of", b"other")]


def test_a_changed_row_tells_those_who_look_for_it_in_their_own_partitions() -> None:
    run = TaskRun(Lookup())
    only = Instruction.PROPAGATE_ONLY_IF_FK_VAL_AVAILABLE
    sent = [
        encode_subscription(Subscription(hash_of(key), only, key, place))
        for place, key in enumerate((b"one", b"two"))
    ]
    assert run.rows([Row(0, b"f", each, 5) for each in sent]) == []
    told = run.rows([Row(1, b"f", b"new", 9)])
    assert [(out.key, out.partition, out.timestamp) for out in told] == [(b"one", 0, 9), (b"two", 1, 9)]
    assert [decode_response(out.value or b"").value for out in told] == [b"new", b"new"]
    gone = Subscription(None, Instruction.DELETE_KEY_AND_PROPAGATE, b"one", 0)
    (answer,) = run.rows([Row(0, b"f", encode_subscription(gone), 10)])
    assert decode_response(answer.value or b"") == Response(None, None)
    assert [out.key for out in run.rows([Row(1, b"f", None, 11)])] == [b"two"]


@pytest.mark.parametrize(
    ("text", "java"),
    [
        ("", "9d2764a018e329428c3cf3b035938518"),
        ("v12", "79f527496c2c0e35623287033c2f4c5e"),
        ("12345678", "ddec8f9026074d665e35523e4a34fe8c"),
        ("123456789012345", "ae037d2b08960000351a1e49bc6671f5"),
        ("1234567890123456", "7eebd4b7e4424c983d2fca5635718acd"),
        ("a longer text than sixteen bytes, é", "920728fe827dd52acef2e7320012af6d"),
    ],
)
def test_hashes_are_those_of_kafka_streams(text: str, java: str) -> None:
    assert (hash_of(text.encode()) or b"").hex() == java


def test_subscriptions_and_responses_are_kafka_streams_bytes() -> None:
    value_hash = bytes(range(16))
    one = Subscription(value_hash, Instruction.PROPAGATE_NULL_IF_NO_FK_VAL_AVAILABLE, b"key", 258)
    assert encode_subscription(one) == b"\x01\x02" + value_hash + b"key" + b"\0\0\1\2"
    none = Subscription(None, Instruction.DELETE_KEY_AND_PROPAGATE, b"key", 0)
    assert encode_subscription(none) == b"\x81\x01key\0\0\0\0"
    assert [decode_subscription(encode_subscription(each)) for each in (one, none)] == [one, none]
    assert encode_response(Response(value_hash, b"v")) == b"\0" + value_hash + b"v"
    assert decode_response(b"\x80") == Response(None, None)
    with pytest.raises(SerializationError, match="version 9"):
        decode_subscription(b"\x09\0")


class Log:
    """A topic's partition, which several read at their own pace."""

    def __init__(self) -> None:
        self._rows: list[Row] = []
        self._read: Counter[str] = Counter()

    def add(self, row: Row) -> None:
        self._rows.append(replace(row, offset=len(self._rows)))

    def take(self, reader: str, most: int) -> list[Row]:
        taken = self._rows[self._read[reader] :][:most]
        self._read[reader] += len(taken)
        return taken


class Pieces:
    """A join whose other table has two partitions, and whose parts run whenever they are told to."""

    def __init__(self, random: Random, *, left: bool) -> None:
        self._random = random
        self._parts = Join(left=left)
        self._lookups = (self._parts.lookup, TaskRun(Lookup()))
        self.own, self._responses = Log(), Log()
        self.others, self._subscriptions = (Log(), Log()), (Log(), Log())
        self.results: dict[bytes, bytes] = {}

    def run(self, part: int, most: int) -> bool:
        """Whether there was something to do."""
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
def test_whoever_is_ahead_the_table_is_right_in_the_end(left: bool) -> None:
    for seed in range(200):
        random = Random(seed)
        join = Pieces(random, left=left)
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
