"""What a task of the source does, without a session of Spark."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark import TaskContext

from moldau.base.ids import TopicPartition
from moldau.pipelines.source.errors import DataLoss
from moldau.pipelines.source.options import SourceOptions, read_options
from moldau.pipelines.source.planning import Range
from moldau.pipelines.source.query_name import NameBox, tell
from moldau.pipelines.source.tasks import RangeTask, read_task
from tests.pipelines.source.topics import Topics, options


def wanted(topics: Topics, topic: str, **given: object) -> SourceOptions:
    return read_options(options(topics.bootstrap_servers, {"subscribe": topic, **given}), stream=True)


def test_what_retention_took_after_the_batch_was_planned(topics: Topics) -> None:
    topic = topics.create()
    topics.fill(topic, 0, *range(10))
    task = RangeTask(Range(TopicPartition(topic, 0), 2, 9))
    topics.admin.delete_records({TopicPartition(topic, 0): 5})
    with pytest.raises(
        DataLoss, match=r"3 of them \(2 to 5\) are gone.*set the option failOnDataLoss to false"
    ):
        list(read_task(wanted(topics, topic), task))
    went_on = read_task(wanted(topics, topic, failOnDataLoss=False), task)
    assert [offset.as_py() for rows in went_on for offset in rows.column("offset")] == [5, 6, 7, 8]


def test_a_task_that_cannot_tell_its_query_reads_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    context = TaskContext()
    context._taskAttemptId, context._localProperties = 7, {"sql.streaming.queryId": "an-id"}
    monkeypatch.setattr(TaskContext, "_taskContext", context)
    box = NameBox()
    obstacle = Path(box.folder) / "query-7"
    obstacle.mkdir()
    tell(box.folder)
    assert box.name() is None
    obstacle.rmdir()
    tell(box.folder)
    assert box.name() == "an-id"
    box.close()
