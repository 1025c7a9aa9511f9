"""Markers detect whether a task of a batch was written before."""

from __future__ import annotations

import pytest

from moldau.base.ids import TopicPartition
from moldau.client.records import OffsetAndMetadata
from moldau.pipelines.sink.errors import CheckpointTooOld, OtherRows, TwoWrites
from moldau.pipelines.sink.markers import check_rows, find_marker, marker_of
from moldau.pipelines.sink.task_context import TaskIdentity
from moldau.protocol.stored.pipeline_markers import is_marker

TASK = TaskIdentity(query="q", run="r2", write="7", batch=4, task=1)


def stored(batch: int, *, run: str = "r1", write: str = "3", rows: int = 10) -> OffsetAndMetadata:
    return marker_of(TaskIdentity(query="q", run=run, write=write, batch=batch, task=1), rows)


def test_marker_of_an_earlier_batch_is_ignored() -> None:
    a, b = TopicPartition("a", 0), TopicPartition("b", 0)
    assert find_marker({}, TASK) is None
    assert find_marker({a: stored(3)}, TASK) is None
    found = find_marker({a: stored(2), b: stored(4)}, TASK)
    assert found is not None
    assert found.rows == 10
    assert stored(4).offset == 5


def test_marker_of_a_later_batch_is_an_error() -> None:
    with pytest.raises(
        CheckpointTooOld, match="has already written batch 5, but its checkpoint is at batch 4"
    ):
        find_marker({TopicPartition("a", 0): stored(5)}, TASK)


def test_second_write_in_the_same_run_is_an_error() -> None:
    place = TopicPartition("a", 0)
    assert find_marker({place: stored(4, run="r2", write="7")}, TASK) is not None
    with pytest.raises(TwoWrites, match="sinkId"):
        find_marker({place: stored(4, run="r2", write="6")}, TASK)


def test_different_number_of_rows_is_an_error() -> None:
    marker = find_marker({TopicPartition("a", 0): stored(4)}, TASK)
    assert marker is not None
    check_rows(marker, TASK, 10)
    with pytest.raises(OtherRows, match="had 10 rows when it was written, and has 9 when"):
        check_rows(marker, TASK, 9)


def test_fewer_rows_are_accepted_after_a_loss_of_input(caplog: pytest.LogCaptureFixture) -> None:
    marker = find_marker({TopicPartition("a", 0): stored(4)}, TASK)
    assert marker is not None
    check_rows(marker, TASK, 9, fewer_allowed=True)
    assert "had 10 rows when it was written, and has 9 after a loss" in caplog.text
    with pytest.raises(OtherRows, match=r"has 11 when.*set the sink's option failOnDataLoss to false"):
        check_rows(marker, TASK, 11, fewer_allowed=True)


def test_transactional_id_names_query_sink_and_task() -> None:
    assert TASK.name("") == "moldau-q-1"
    assert TASK.name("orders") == "moldau-q-orders-1"


def test_markers_are_told_from_the_positions_of_consumers() -> None:
    assert is_marker(stored(4).metadata)
    assert not any(map(is_marker, (None, "", "{}", '{"rows":1}', "host-1")))
