"""Whether a task of a batch was written before, from what the brokers say; no Spark here."""

from __future__ import annotations

import pytest

from moldau.base.ids import TopicPartition
from moldau.client.records import OffsetAndMetadata
from moldau.pipelines.sink.errors import CheckpointTooOld, OtherRows, TwoWrites
from moldau.pipelines.sink.identity import TaskIdentity
from moldau.pipelines.sink.markers import check_rows, find_marker, marker_of

TASK = TaskIdentity(query="q", run="r2", write="7", batch=4, task=1)


def stored(batch: int, *, run: str = "r1", write: str = "3", rows: int = 10) -> OffsetAndMetadata:
    return marker_of(TaskIdentity(query="q", run=run, write=write, batch=batch, task=1), rows)


def test_only_the_marker_of_this_very_batch_counts() -> None:
    a, b = TopicPartition("a", 0), TopicPartition("b", 0)
    assert find_marker({}, TASK) is None
    assert find_marker({a: stored(3)}, TASK) is None
    found = find_marker({a: stored(2), b: stored(4)}, TASK)
    assert found is not None
    assert found.rows == 10
    assert stored(4).offset == 5


def test_a_checkpoint_that_is_older_than_the_topics() -> None:
    with pytest.raises(CheckpointTooOld, match="has written batch 5 already, and is to write batch 4"):
        find_marker({TopicPartition("a", 0): stored(5)}, TASK)


def test_a_second_write_of_the_same_run_is_not_a_repetition() -> None:
    place = TopicPartition("a", 0)
    assert find_marker({place: stored(4, run="r2", write="7")}, TASK) is not None
    with pytest.raises(TwoWrites, match="sinkId"):
        find_marker({place: stored(4, run="r2", write="6")}, TASK)


def test_other_rows_than_before() -> None:
    marker = find_marker({TopicPartition("a", 0): stored(4)}, TASK)
    assert marker is not None
    check_rows(marker, TASK, 10)
    with pytest.raises(OtherRows, match="had 10 rows when it was written, and has 9 now"):
        check_rows(marker, TASK, 9)


def test_fewer_rows_than_before_where_input_may_be_lost(caplog: pytest.LogCaptureFixture) -> None:
    marker = find_marker({TopicPartition("a", 0): stored(4)}, TASK)
    assert marker is not None
    check_rows(marker, TASK, 9, fewer_may_be=True)
    assert "had 10 rows when it was written, and has 9 now" in caplog.text
    with pytest.raises(OtherRows, match=r"has 11 now.*set the sink's option failOnDataLoss to false"):
        check_rows(marker, TASK, 11, fewer_may_be=True)


def test_names_of_transactions() -> None:
    assert TASK.name("") == "moldau-q-1"
    assert TASK.name("orders") == "moldau-q-orders-1"
