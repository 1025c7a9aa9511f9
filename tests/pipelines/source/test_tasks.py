"""The tasks of the source, without a Spark session."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark import TaskContext

from moldau.base.ids import TopicPartition
from moldau.client.admin.client import checked
from moldau.pipelines.source.consumer_group import QueryNameFolder, store_query_name
from moldau.pipelines.source.errors import DataLoss
from moldau.pipelines.source.options import SourceOptions, read_options
from moldau.pipelines.source.planning import Range
from moldau.pipelines.source.tasks import RangeTask, read_task
from tests.harness.waiting import eventually
from tests.pipelines.source.topics import Topics, options


def wanted(topics: Topics, topic: str, **given: object) -> SourceOptions:
    return read_options(options(topics.bootstrap_servers, {"subscribe": topic, **given}), stream=True)


def offsets(batches: Iterator[Any]) -> list[int]:
    return [offset.as_py() for rows in batches for offset in rows.column("offset")]


def test_records_deleted_after_planning_are_a_loss(topics: Topics) -> None:
    topic = topics.create()
    topics.fill(topic, 0, *range(10))
    task = RangeTask(Range(TopicPartition(topic, 0), 2, 9))
    topics.admin.delete_records({TopicPartition(topic, 0): 5})
    with pytest.raises(
        DataLoss, match=r"3 of them \(2 to 5\) are gone.*set the option failOnDataLoss to false"
    ):
        list(read_task(wanted(topics, topic), task))
    went_on = read_task(wanted(topics, topic, failOnDataLoss=False), task)
    assert offsets(went_on) == [5, 6, 7, 8]


def test_topic_deleted_or_recreated_after_planning_is_a_loss(topics: Topics) -> None:
    topic = topics.create()
    topics.fill(topic, 0, *range(10))
    task = RangeTask(Range(TopicPartition(topic, 0), 2, 9), topics.admin.list_topics()[topic].id)
    assert offsets(read_task(wanted(topics, topic), task)) == list(range(2, 9))
    checked(topics.admin.delete_topics([topic]))
    eventually(lambda: topic not in topics.admin.list_topics())
    quickly = {"kafka.default.api.timeout.ms": 100}
    with pytest.raises(DataLoss, match=f"{topic}-0 was deleted while it was read. To continue without"):
        list(read_task(wanted(topics, topic, **quickly), task))
    assert offsets(read_task(wanted(topics, topic, failOnDataLoss=False, **quickly), task)) == []
    topics.create(name=topic)
    topics.fill(topic, 0, *range(10))
    with pytest.raises(
        DataLoss, match=r"created again while it was read.*To read the recreated topic from its"
    ):
        list(read_task(wanted(topics, topic, **quickly), task))
    assert offsets(read_task(wanted(topics, topic, failOnDataLoss=False, **quickly), task)) == []


def test_task_that_cannot_store_the_query_name_continues(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(TaskContext, "_taskContext", None)  # The constructor sets it for the whole process.
    context = TaskContext()
    context._taskAttemptId, context._localProperties = 7, {"sql.streaming.queryId": "an-id"}
    names = QueryNameFolder()
    obstacle = Path(names.folder) / "query-7"
    obstacle.mkdir()
    store_query_name(names.folder)
    assert names.name() is None
    obstacle.rmdir()
    store_query_name(names.folder)
    assert names.name() == "an-id"
    names.close()
