"""Tasks process records in the order of Kafka Streams, and name the operator and record of a failure."""

from __future__ import annotations

import pytest

from moldau.pipelines.streams.dsl.serdes import Serdes
from moldau.pipelines.streams.errors import StreamsException
from moldau.pipelines.streams.tasks.table_joins import JoinSerdes, TableJoin
from moldau.pipelines.streams.tasks.task import Row, in_order
from tests.unit.pipelines.streams.tasks.task_run import TaskRun

TEXT = Serdes.string()


def test_partitions_are_merged_by_timestamp_without_reordering_a_partition() -> None:
    late = [Row(0, b"a", None, time, topic="t", offset=at) for at, time in enumerate([5, 1, 9])]
    other = [Row(1, b"a", None, time, topic="u", offset=at) for at, time in enumerate([4, 6])]
    order = [(row.port, row.timestamp) for row in in_order([*reversed(other), *reversed(late)])]
    assert order == [(1, 4), (0, 5), (0, 1), (1, 6), (0, 9)]


def test_failure_names_the_operator_and_the_record() -> None:
    def fails(key: str, one: str, two: str) -> str:
        raise ValueError("never")

    join = TaskRun(TableJoin("inner", fails, JoinSerdes(TEXT, TEXT, TEXT, TEXT)))
    join.operator.name = "both"
    with pytest.raises(StreamsException, match="both failed on topic-1-0@2: ValueError: never"):
        join.batch((0, "a", "1", 1), (1, "a", "2", 2))
    numbers = TaskRun(TableJoin("inner", fails, JoinSerdes(TEXT, Serdes.long(), TEXT, TEXT)))
    with pytest.raises(StreamsException, match="cannot deserialize topic-1-0@2 or serialize its result"):
        numbers.batch((0, "a", "1", 1), (1, "a", "2", 2))
