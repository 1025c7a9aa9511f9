"""Regrouping tables, and aggregates of grouped tables."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from moldau.pipelines.streams.dsl.serdes import Serdes
from moldau.pipelines.streams.tasks.grouped_tables import (
    AggregateFunctions,
    AggregateSerdes,
    Change,
    Regroup,
    RegroupSerdes,
    TableAggregation,
    decode_change,
    encode_change,
)
from moldau.pipelines.streams.topology.graph import TableStore
from moldau.pipelines.streams.topology.stateful import TableAggregate
from tests.unit.pipelines.streams.tasks.task_run import TaskRun, texts

TEXT = Serdes.string()


@given(st.one_of(st.none(), st.binary()), st.one_of(st.none(), st.binary()))
def test_change_is_decoded_as_it_was_encoded(new: bytes | None, old: bytes | None) -> None:
    if new is not None or old is not None:
        assert decode_change(encode_change(Change(new, old))) == Change(new, old)


def test_changes_have_the_bytes_of_kafka_streams() -> None:
    assert encode_change(Change(b"n", None)) == b"n\x01"
    assert encode_change(Change(None, b"o")) == b"o\x00"
    assert encode_change(Change(b"new" * 30, b"o")) == b"\xb4\x01" + b"new" * 30 + b"o\x02"


def by_parity(key: str, value: str) -> tuple[str | None, str]:
    return (("odd", "even")[int(value) % 2 == 0], value) if value != "0" else (None, value)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.one_of(st.none(), st.integers(0, 9)))))
def test_aggregate_of_a_regrouped_table_subtracts_old_and_adds_new_values(
    updates: list[tuple[str, int | None]],
) -> None:
    select = TaskRun(Regroup(by_parity, RegroupSerdes(TEXT, TEXT, TEXT, TEXT)))
    functions = AggregateFunctions(
        lambda: 0, lambda _, v, total: total + int(v), lambda _, v, total: total - int(v)
    )
    sums = TaskRun(TableAggregation(functions, AggregateSerdes(TEXT, TEXT, Serdes.long())))
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


def test_first_value_of_a_reduce_is_its_aggregate() -> None:
    store = TableStore("store", queryable=False, materialized=True)
    reduce = TableAggregate(
        "reduce", store, None, lambda one, two: one + two, lambda one, two: one + "-" + two
    )
    functions = AggregateFunctions.of(reduce)
    run = TaskRun(TableAggregation(functions, AggregateSerdes(TEXT, TEXT, TEXT)))
    assert texts(run.batch((0, "k", "a\x01", 5))) == [("k", "a", 5)]
    given = run.batch((0, "k", "b\x01", 3), (0, "x", "a\x00", 9), (0, "k", "a\x00", 9))
    # The last update of each key.
    assert texts(given) == [("x", None, 9), ("k", "ab-a", 9)]
