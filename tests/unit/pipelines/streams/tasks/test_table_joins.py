"""Stream-table and table-table joins, record by record."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.pipelines.streams.dsl.serdes import Serdes
from moldau.pipelines.streams.tasks.table_joins import JoinSerdes, Lookup, TableJoin
from moldau.pipelines.streams.topology.stateful import JoinKind
from tests.unit.pipelines.streams.tasks.task_run import TaskRun, texts

TEXT = Serdes.string()


SERDES = JoinSerdes(TEXT, TEXT, TEXT, TEXT)


LEFT, RIGHT = 0, 1


def joined(key: Any, left: Any, right: Any) -> str:
    return f"{left}+{right}"


def test_stream_record_joins_the_current_row_of_the_table() -> None:
    run = TaskRun(Lookup(joined, SERDES, left=False))
    first = run.batch(
        (RIGHT, "a", "1", 10), (LEFT, "a", "x", 20), (RIGHT, "a", "2", 30), (LEFT, "a", "y", 40)
    )
    assert texts(first) == [("a", "x+1", 20), ("a", "y+2", 40)]
    rest = run.batch((LEFT, "a", "z", 50), (LEFT, "b", "z", 50), (LEFT, None, "z", 50), (LEFT, "a", None, 50))
    assert texts(rest) == [("a", "z+2", 50)]
    assert run.batch((RIGHT, "a", None, 60), (LEFT, "a", "z", 70)) == []


def test_left_stream_table_join_has_results_without_a_row() -> None:
    run = TaskRun(Lookup(joined, SERDES, left=True))
    given = run.batch((LEFT, "a", "x", 1), (LEFT, None, "y", 2), (LEFT, "a", None, 3))
    assert texts(given) == [("a", "x+None", 1), (None, "y+None", 2)]


JOINS: dict[JoinKind, list[tuple[str, str | None, int]]] = {
    "inner": [("a", "l+r", 2), ("a", None, 3), ("a", "m+r", 4), ("a", None, 5)],
    "left": [("a", "l+None", 1), ("a", "l+r", 2), ("a", None, 3), ("a", "m+r", 4), ("a", "m+None", 5)],
    "outer": [("a", "l+None", 1), ("a", "l+r", 2), ("a", "None+r", 3), ("a", "m+r", 4), ("a", "m+None", 5)],
}


@pytest.mark.parametrize("kind", JOINS)
def test_table_join_emits_updates_and_tombstones(kind: JoinKind) -> None:
    run = TaskRun(TableJoin(kind, joined, SERDES))
    given = run.batch((LEFT, "a", "l", 1), (RIGHT, "a", "r", 2), (LEFT, "a", None, 3), (LEFT, None, "x", 3))
    given += run.batch((LEFT, "a", "m", 4), (RIGHT, "a", None, 5))
    assert texts(given) == JOINS[kind]


def test_deleting_missing_rows_emits_nothing() -> None:
    run = TaskRun(TableJoin("outer", joined, SERDES))
    assert run.batch((LEFT, "a", None, 1), (RIGHT, "a", None, 2)) == []


_Updates = st.lists(
    st.tuples(
        st.sampled_from([LEFT, RIGHT]), st.sampled_from("abc"), st.one_of(st.none(), st.sampled_from("xyz"))
    )
)


@given(_Updates, st.sampled_from(["inner", "left", "outer"]), st.integers(1, 5))
def test_table_join_result_is_the_join_of_the_latest_values(
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
