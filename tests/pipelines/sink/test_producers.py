"""The producers of a worker process, with a broker and without Spark."""

from __future__ import annotations

import threading

import pyarrow as pa
import pytest

from moldau.pipelines.sink.errors import CheckpointTooOld, TransactionLost
from moldau.pipelines.sink.options import SinkOptions, read_sink_options
from moldau.pipelines.sink.producers import transaction
from moldau.pipelines.sink.task_context import TaskIdentity
from tests.pipelines.sink.records import numbers
from tests.pipelines.source.topics import Topics


def task(query: str, batch: int) -> TaskIdentity:
    return TaskIdentity(query=query, run="r", write=str(batch), batch=batch, task=0)


def options(topics: Topics, topic: str, **client: str) -> SinkOptions:
    given = {f"kafka.{name.replace('_', '.')}": value for name, value in client.items()}
    where = {"kafka.bootstrap.servers": topics.bootstrap_servers, "topic": topic}
    return read_sink_options({**where, **given}, stream=True)


def write(wanted: SinkOptions, identity: TaskIdentity, *values: int) -> None:
    with transaction(wanted, identity) as opened:
        opened.begin()
        rows = pa.RecordBatch.from_pydict({"value": [str(each) for each in values]})
        opened.producer.send(rows, wanted.topic)
        opened.commit(str(wanted.topic), len(values))


def writers() -> int:
    return sum(thread.name == "moldau-batch-writer" for thread in threading.enumerate())


def test_failed_task_closes_its_producer(topics: Topics) -> None:
    topic = topics.create()
    wanted = options(topics, topic)
    write(wanted, task(topic, 4), 1, 2)
    before = writers()
    for _ in range(3):
        with pytest.raises(CheckpointTooOld):
            write(wanted, task(topic, 2), 3)
    too_long = options(topics, topic, transaction_timeout_ms="2000000000")
    for _ in range(3):
        with pytest.raises(TransactionLost, match=r"transaction\.max\.timeout\.ms"):
            write(too_long, task(topic, 5), 3)
    assert writers() <= before
    assert numbers(topics, topic) == [1, 2]
