"""Suppression until a time limit."""

from __future__ import annotations

import pytest

from moldau.pipelines.streams.dsl.parameters import BufferConfig
from moldau.pipelines.streams.errors import StreamsException
from moldau.pipelines.streams.tasks.suppression import Suppression
from tests.unit.pipelines.streams.tasks.task_run import TaskRun, texts


def test_last_update_is_emitted_after_the_time_limit() -> None:
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


def test_full_buffer_emits_early_or_shuts_down() -> None:
    early = TaskRun(Suppression(1000, BufferConfig.max_records(2).with_max_bytes(100)))
    given = early.batch((0, "a", "1", 5), (0, "b", "2", 6), (0, "a", "3", 7), (0, "c", "4", 8))
    assert texts(given) == [("a", "3", 7)]
    assert texts(early.batch((0, "d", "x" * 99, 9))) == [("b", "2", 6), ("c", "4", 8)]
    strict = TaskRun(Suppression(1000, BufferConfig.max_records(1).shut_down_when_full()))
    with pytest.raises(
        StreamsException, match="2 updates of 4 bytes exceed the limits of 1 updates and unlimited bytes"
    ):
        strict.batch((0, "a", "1", 5), (0, "b", "2", 6))
