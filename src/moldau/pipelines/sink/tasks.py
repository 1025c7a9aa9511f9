"""What one task does with its rows.

Exactly once, a task is one transaction: take the transactional id over, look at the marker, and either
write the rows with a new marker, or, if an earlier attempt did, only count them. Rows are read to their end
in any case, because stateful operators in front of the sink store their state when the last row is taken.
Nothing is committed unless all of them came. A task without rows does nothing at all.

Rows of one key keep their order: a task writes them in the order in which they come.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from moldau.pipelines.sink.columns import Columns
from moldau.pipelines.sink.completeness import all_rows
from moldau.pipelines.sink.errors import SinkError
from moldau.pipelines.sink.identity import TaskIdentity, adaptive, task_identity
from moldau.pipelines.sink.lost_input import may_be_lost
from moldau.pipelines.sink.markers import check_rows
from moldau.pipelines.sink.options import SinkOptions
from moldau.pipelines.sink.producers import Transaction, nothing_written, plain_producer, transaction
from moldau.pipelines.source.errors import InvalidOption


def write_rows(
    options: SinkOptions, columns: Columns, batches: Iterator[pa.RecordBatch], *, stream: bool
) -> int:
    """Write the rows of this task; returns how many there were."""
    if not options.exactly_once:
        return _at_least_once(options, columns, (batch for batch in batches if batch.num_rows))
    identity = task_identity()
    if identity is None:
        raise InvalidOption(
            "delivery=exactly-once is for streaming queries, whose batches Spark numbers: use it with "
            "writeStream, or inside a foreachBatch function (in threads of your own, with "
            "pyspark.inheritable_thread_target)."
        )
    if setting := adaptive(stream=stream):
        raise SinkError(
            f"Set {setting} to false (moldau.pipelines.session and register do that for streams): a batch "
            "that is run again after a crash must have the same tasks as before, and with it Spark chooses "
            "them anew."
        )
    return _exactly_once(options, columns, identity, all_rows(batches))


def _exactly_once(
    options: SinkOptions, columns: Columns, identity: TaskIdentity, batches: Iterator[pa.RecordBatch]
) -> int:
    first = next(batches, None)
    if first is None:
        nothing_written(options, identity)
        return 0
    with transaction(options, identity) as opened:
        if opened.marker is None:
            return _write(opened, columns, first, batches)
        rows = int(first.num_rows) + sum(int(batch.num_rows) for batch in batches)
        check_rows(opened.marker, identity, rows, fewer_may_be=may_be_lost(options))
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
