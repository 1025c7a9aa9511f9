"""Rows are joined with the responses to their subscriptions, in whatever order they arrive."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from moldau.pipelines.streams.tasks.foreign_key_results import Resolve
from moldau.pipelines.streams.tasks.subscriptions import (
    Response,
    encode_response,
    hash_of,
    with_place,
)
from moldau.pipelines.streams.tasks.table_joins import JoinSerdes
from moldau.pipelines.streams.tasks.task import Row
from tests.harness.streams.scenes import TEXT, together
from tests.unit.pipelines.streams.tasks.task_run import TaskRun, texts


def joined(_key: Any, one: Any, two: Any) -> str:
    return together(one, two)


def resolving(*, left: bool = False) -> TaskRun:
    return TaskRun(Resolve(joined, JoinSerdes(TEXT, TEXT, TEXT, TEXT), left=left))


def row(value: str | None, offset: int) -> Row:
    return Row(0, b"k", None if value is None else value.encode(), offset, offset=offset)


def response(to: Row, value: str | None, offset: int, timestamp: int = 50) -> Row:
    """Return a response for a row; `value` is that of the other table."""
    data = encode_response(Response(hash_of(to.value), None if value is None else value.encode()))
    return Row(1, b"k", data, timestamp, with_place([], (to.offset, 0)), offset=offset)


def test_response_waits_for_its_row() -> None:
    """The tasks read the topics of rows and responses independently, so a response may be ahead of its
    row."""
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
def test_responses_of_several_tasks_wait_for_their_rows(order: Sequence[int], left: bool) -> None:
    """A foreign key changes and changes back. The two keys are in different partitions of the other table,
    whose tasks respond in any order."""
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
def test_response_for_a_replaced_value_is_ignored(order: Sequence[int]) -> None:
    run = resolving()
    one, two = row("v1", 1), row("v2", 2)
    given = run.rows([one, two, response(one, "a", order[0]), response(two, "b", order[1])])
    assert texts(given) == [("k", "v2+b", 50)]


def test_response_without_a_match_deletes_the_result_of_an_earlier_value() -> None:
    """The new value has no response, because it has no match."""
    run = resolving()
    one = row("v1", 1)
    assert texts(run.rows([one, response(one, "x", 0)])) == [("k", "v1+x", 50)]
    assert run.rows([row("v2", 2)]) == []
    assert texts(run.rows([response(one, None, 1)])) == [("k", None, 50)]
    assert run.maps["results"] == {}
    assert run.rows([response(one, None, 2)]) == []


def test_response_for_an_earlier_value_does_not_delete_a_later_result() -> None:
    run = resolving()
    one, two = row("v1", 1), row("v2", 2)
    assert len(run.rows([one, two, response(two, "b", 0)])) == 1
    assert run.rows([response(one, None, 1)]) == []
