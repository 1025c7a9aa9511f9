"""Joins and aggregates of tables, record by record, as Kafka Streams' processors say it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.pipelines.streams.dsl.parameters import BufferConfig
from moldau.pipelines.streams.dsl.serdes import Serdes
from moldau.pipelines.streams.errors import StreamsException
from moldau.pipelines.streams.tasks.changes import Change, decode_change, encode_change
from moldau.pipelines.streams.tasks.grouped_tables import (
    AggregateFunctions,
    AggregateSerdes,
    Regroup,
    RegroupSerdes,
    TableAggregate,
)
from moldau.pipelines.streams.tasks.suppression import Suppression
from moldau.pipelines.streams.tasks.table_joins import JoinKind, JoinSerdes, Lookup, TableJoin
from moldau.pipelines.streams.tasks.task import Row, in_order
from tests.unit.pipelines.streams.tasks.task_runs import TaskRun, texts

TEXT = Serdes.string()
SERDES = JoinSerdes(TEXT, TEXT, TEXT, TEXT)
LEFT, RIGHT = 0, 1


def joined(key: Any, left: Any, right: Any) -> str:
    return f"{left}+{right}"


def test_rows_keep_the_order_of_their_partition_and_partitions_meet_by_time() -> None:
    late = [Row(0, b"a", None, time, topic="t", offset=at) for at, time in enumerate([5, 1, 9])]
    other = [Row(1, b"a", None, time, topic="u", offset=at) for at, time in enumerate([4, 6])]
    order = [(row.port, row.timestamp) for row in in_order([*reversed(other), *reversed(late)])]
    assert order == [(1, 4), (0, 5), (0, 1), (1, 6), (0, 9)]


def test_a_stream_finds_what_the_table_has_at_that_moment() -> None:
    run = TaskRun(Lookup(joined, SERDES, left=False))
    first = run.batch(
        (RIGHT, "a", "1", 10), (LEFT, "a", "x", 20), (RIGHT, "a", "2", 30), (LEFT, "a", "y", 40)
    )
    assert texts(first) == [("a", "x+1", 20), ("a", "y+2", 40)]
    rest = run.batch((LEFT, "a", "z", 50), (LEFT, "b", "z", 50), (LEFT, None, "z", 50), (LEFT, "a", None, 50))
    assert texts(rest) == [("a", "z+2", 50)]
    assert run.batch((RIGHT, "a", None, 60), (LEFT, "a", "z", 70)) == []


def test_a_left_join_goes_on_without_the_table() -> None:
    run = TaskRun(Lookup(joined, SERDES, left=True))
    given = run.batch((LEFT, "a", "x", 1), (LEFT, None, "y", 2), (LEFT, "a", None, 3))
    assert texts(given) == [("a", "x+None", 1), (None, "y+None", 2)]


JOINS: dict[JoinKind, list[tuple[str, str | None, int]]] = {
    "inner": [("a", "l+r", 2), ("a", None, 3), ("a", "m+r", 4), ("a", None, 5)],
    "left": [("a", "l+None", 1), ("a", "l+r", 2), ("a", None, 3), ("a", "m+r", 4), ("a", "m+None", 5)],
    "outer": [("a", "l+None", 1), ("a", "l+r", 2), ("a", "None+r", 3), ("a", "m+r", 4), ("a", "m+None", 5)],
}


@pytest.mark.parametrize("kind", JOINS)
def test_two_tables(kind: JoinKind) -> None:
    run = TaskRun(TableJoin(kind, joined, SERDES))
    given = run.batch((LEFT, "a", "l", 1), (RIGHT, "a", "r", 2), (LEFT, "a", None, 3), (LEFT, None, "x", 3))
    given += run.batch((LEFT, "a", "m", 4), (RIGHT, "a", None, 5))
    assert texts(given) == JOINS[kind]


def test_tables_that_lose_what_they_never_had_say_nothing() -> None:
    run = TaskRun(TableJoin("outer", joined, SERDES))
    assert run.batch((LEFT, "a", None, 1), (RIGHT, "a", None, 2)) == []


_Updates = st.lists(
    st.tuples(
        st.sampled_from([LEFT, RIGHT]), st.sampled_from("abc"), st.one_of(st.none(), st.sampled_from("xyz"))
    )
)


@given(_Updates, st.sampled_from(["inner", "left", "outer"]), st.integers(1, 5))
def test_the_result_is_the_join_of_the_last_values(
    updates: list[tuple[int, str, str | None]], kind: JoinKind, size: int
) -> None:
    """However the updates are cut into batches."""
    run, result = TaskRun(TableJoin(kind, joined, SERDES)), {}
    tables: tuple[dict[str, str | None], dict[str, str | None]] = ({}, {})
    timed = [(port, key, value, at) for at, (port, key, value) in enumerate(updates)]
    for begin in range(0, len(timed), size):
        given = texts(run.batch(*timed[begin : begin + size]))
        result.update({key: value for key, value, _ in given})
    for port, key, value, _ in timed:
        tables[port][key] = value
    expected = {}
    for key in "abc":
        left, right = tables[LEFT].get(key), tables[RIGHT].get(key)
        needed = {"inner": left and right, "left": left, "outer": left or right}[kind]
        if needed:
            expected[key] = joined(key, left, right)
    assert {key: value for key, value in result.items() if value is not None} == expected


@given(st.one_of(st.none(), st.binary()), st.one_of(st.none(), st.binary()))
def test_changes_are_read_as_they_were_written(new: bytes | None, old: bytes | None) -> None:
    if new is not None or old is not None:
        assert decode_change(encode_change(Change(new, old))) == Change(new, old)


def test_changes_have_the_bytes_of_kafka_streams() -> None:
    assert encode_change(Change(b"n", None)) == b"n\x01"
    assert encode_change(Change(None, b"o")) == b"o\x00"
    assert encode_change(Change(b"new" * 30, b"o")) == b"\xb4\x01" + b"new" * 30 + b"o\x02"


def by_parity(key: str, value: str) -> tuple[str | None, str]:
    return (("odd", "even")[int(value) % 2 == 0], value) if value != "0" else (None, value)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.one_of(st.none(), st.integers(0, 9)))))
def test_sums_of_a_regrouped_table(updates: list[tuple[str, int | None]]) -> None:
    select = TaskRun(Regroup(by_parity, RegroupSerdes(TEXT, TEXT, TEXT, TEXT)))
    functions = AggregateFunctions(
        lambda: 0, lambda _, v, total: total + int(v), lambda _, v, total: total - int(v)
    )
    sums = TaskRun(TableAggregate(functions, AggregateSerdes(TEXT, TEXT, Serdes.long())))
    result: dict[bytes | None, int] = {}
    for at, (key, value) in enumerate(updates):
        regrouped = select.batch((0, key, None if value is None else str(value), at))
        for change in regrouped:
            for out in sums.batch(
                (0, change.key and change.key.decode(), change.value.decode("latin-1"), at)
            ):
                result[out.key] = Serdes.long().deserialize("", out.value)
    table = {key: value for key, value in dict(updates).items() if value}
    expected = {b"odd": 0, b"even": 0}
    for value in table.values():
        expected[b"even" if value % 2 == 0 else b"odd"] += value
    assert {key: result.get(key, 0) for key in expected} == expected


def test_the_first_value_of_a_reduce_is_its_aggregate() -> None:
    functions = AggregateFunctions.of_reducers(lambda one, two: one + two, lambda one, two: one + "-" + two)
    run = TaskRun(TableAggregate(functions, AggregateSerdes(TEXT, TEXT, TEXT)))
    given = run.batch((0, "k", "a\x01", 5), (0, "k", "b\x01", 3), (0, "k", "a\x00", 9), (0, "x", "a\x00", 9))
    assert texts(given) == [("k", "a", 5), ("k", "ab", 5), ("k", "ab-a", 9), ("x", None, 9)]


def test_only_the_last_update_goes_on_when_its_time_has_come() -> None:
    run = TaskRun(Suppression(10))
    assert run.batch((0, "a", "1", 100), (0, "a", "2", 105), (0, "b", "1", 108)) == []
    assert texts(run.batch((0, "c", "1", 110))) == [("a", "2", 105)]
    assert texts(run.batch((0, "a", "3", 90), (0, "d", "1", 125))) == [
        ("a", "3", 90),
        ("b", "1", 108),
        ("c", "1", 110),
    ]
    assert run.batch((0, "d", None, 126)) == []
    assert texts(run.batch((0, "e", "1", 200))) == [("d", None, 126)]


def test_what_fails_in_a_task_is_named_with_its_record() -> None:
    def fails(key: str, one: str, two: str) -> str:
        raise ValueError("never")

    join = TaskRun(TableJoin("inner", fails, JoinSerdes(TEXT, TEXT, TEXT, TEXT)))
    join.operator.name = "both"
    with pytest.raises(StreamsException, match="both failed on topic-1-0@2: ValueError: never"):
        join.batch((0, "a", "1", 1), (1, "a", "2", 2))
    numbers = TaskRun(TableJoin("inner", fails, JoinSerdes(TEXT, Serdes.long(), TEXT, TEXT)))
    with pytest.raises(StreamsException, match="cannot decode topic-1-0@2 or encode what became of it"):
        numbers.batch((0, "a", "1", 1), (1, "a", "2", 2))


def test_what_is_held_back_has_limits() -> None:
    early = TaskRun(Suppression(1000, BufferConfig.max_records(2).with_max_bytes(100)))
    given = early.batch((0, "a", "1", 5), (0, "b", "2", 6), (0, "a", "3", 7), (0, "c", "4", 8))
    assert texts(given) == [("a", "3", 7)]
    assert texts(early.batch((0, "d", "x" * 99, 9))) == [("b", "2", 6), ("c", "4", 8)]
    strict = TaskRun(Suppression(1000, BufferConfig.max_records(1).shut_down_when_full()))
    with pytest.raises(StreamsException, match="2 updates in 4 bytes are held back, more than 1 updates"):
        strict.batch((0, "a", "1", 5), (0, "b", "2", 6))
