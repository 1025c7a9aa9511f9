"""Write the rows of one task.

With exactly-once delivery a task is one transaction: acquire the transactional id, read the marker, and
either write the rows with a new marker or, if an earlier attempt has written them, only count them. All rows
are consumed in any case, because stateful operators upstream store their state at the last row. Nothing is
committed unless all rows were received. A task without rows does nothing.

A task writes rows in the order in which it receives them.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from moldau.pipelines.options import InvalidOption
from moldau.pipelines.sink.columns import Columns
from moldau.pipelines.sink.errors import SinkError
from moldau.pipelines.sink.markers import check_rows
from moldau.pipelines.sink.options import SinkOptions
from moldau.pipelines.sink.producers import Transaction, plain_producer, skip_batch, transaction
from moldau.pipelines.sink.query_listener import input_may_be_lost
from moldau.pipelines.sink.task_context import TaskIdentity, adaptive_setting, all_rows, task_identity


def write_rows(
    options: SinkOptions, columns: Columns, batches: Iterator[pa.RecordBatch], *, stream: bool
) -> int:
    """Write the rows of this task; return their number."""
    if not options.exactly_once:
        return _at_least_once(options, columns, (batch for batch in batches if batch.num_rows))
    identity = task_identity()
    if identity is None:
        raise InvalidOption(
            "delivery=exactly-once needs the batch id of a streaming query: use it with writeStream or "
            "inside a foreachBatch function (in your own threads, with pyspark.inheritable_thread_target)."
        )
    if setting := adaptive_setting(stream=stream):
        raise SinkError(
            f"Set {setting} to false (moldau.pipelines.session and register do so for streams): a batch that "
            "is replayed after a failure must have the same tasks, and adaptive execution changes them."
        )
    return _exactly_once(options, columns, identity, all_rows(batches))


def _exactly_once(
    options: SinkOptions, columns: Columns, identity: TaskIdentity, batches: Iterator[pa.RecordBatch]
) -> int:
    first = next(batches, None)
    if first is None:
        skip_batch(options, identity)
        return 0
    with transaction(options, identity) as opened:
        if opened.marker is None:
            return _write(opened, columns, first, batches)
        rows = int(first.num_rows) + sum(int(batch.num_rows) for batch in batches)
        check_rows(opened.marker, identity, rows, fewer_allowed=input_may_be_lost(options))
        return rows


def _write(
    opened: Transaction, columns: Columns, first: pa.RecordBatch, others: Iterator[pa.RecordBatch]
) -> int:
    rows = 0
    batch: pa.RecordBatch | None = first
    topic = columns.first_topic(first)
    opened.begin()
    while batch is not None:
        opened.producer.send(columns.of(batch), columns.topic)
        rows += batch.num_rows
        batch = next(others, None)
    opened.commit(topic, rows)
    return rows


def _at_least_once(options: SinkOptions, columns: Columns, batches: Iterator[pa.RecordBatch]) -> int:
    rows = 0
    with plain_producer(options) as producer:
        for batch in batches:
            producer.send(columns.of(batch), columns.topic)
            rows += batch.num_rows
        producer.flush()
    return rows
