"""The context of a sink's task: its identity, and whether it received all of its rows.

**Identity.** If the commit of a batch is missing in the checkpoint, Spark replays the batch: the same query
and batch id, in another run. Spark's stream execution thread passes all of these as local properties, also to
writes inside `foreachBatch`.

**Completeness.** When a query is stopped, or an operator upstream of the sink fails, Spark closes the
connection to the Python worker. Arrow reads that as a normal end of the rows, and a truncated task would be
committed. Spark sends a marker after the last row, which its worker reads when the task is done; until then
it is in the worker's input, where it can be peeked.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from types import FrameType
from typing import Any

import pyarrow as pa
from pyspark import TaskContext

from moldau.pipelines.sink.errors import RowsMissing, SinkError

_QUERY, _BATCH, _RUN = "sql.streaming.queryId", "streaming.sql.batchId", "spark.jobGroup.id"
_WRITE = "spark.sql.execution.id"
_ADAPTIVE, _ADAPTIVE_STREAMS = "spark.sql.adaptive.enabled", "spark.sql.adaptive.streaming.stateless.enabled"

#: The function of Spark's worker that runs a task, and its variable for the input.
_RUNS_TASK, _INPUT = "invoke_udf", "input_data_stream"


@dataclass(frozen=True, slots=True)
class TaskIdentity:
    """`query` is stable as long as the checkpoint, `run` while the query runs; `write` is unique."""

    query: str
    run: str
    write: str
    batch: int
    task: int

    def name(self, sink: str) -> str:
        """Return the transactional id of the task, which is also the group of its marker."""
        return "-".join(["moldau", self.query, *([sink] if sink else []), str(self.task)])


def task_identity() -> TaskIdentity | None:
    """Return the identity of this task; None outside of a streaming query."""
    query, batch = local_property(_QUERY), local_property(_BATCH)
    context = TaskContext.get()
    if context is None or query is None or batch is None:
        return None
    return TaskIdentity(
        query=query,
        run=local_property(_RUN) or "",
        write=local_property(_WRITE) or "",
        batch=int(batch),
        task=context.partitionId(),
    )


def adaptive_setting(*, stream: bool) -> str | None:
    """Return the setting that lets Spark change the number of tasks at run time, if it is on."""
    if TaskContext.get() is None or local_property(_ADAPTIVE) == "false":
        return None
    if not stream:
        return _ADAPTIVE
    return None if local_property(_ADAPTIVE_STREAMS) == "false" else _ADAPTIVE_STREAMS


def local_property(name: str) -> str | None:
    """Return a local property of the running task; None if it is not set or there is no task."""
    context = TaskContext.get()
    value: str | None = None if context is None else context.getLocalProperty(name)
    return value


def all_rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the batches that have rows; raise `RowsMissing` at the end if rows are missing."""
    for batch in batches:
        if batch.num_rows:
            yield batch
    if not _worker_input().peek(1):
        raise RowsMissing(
            "The query was stopped, or an operator upstream of the sink failed, before the task received its "
            "last row. Nothing was written."
        )


def _worker_input() -> Any:
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        if frame.f_code.co_name == _RUNS_TASK and _INPUT in frame.f_locals:
            return frame.f_locals[_INPUT]
        frame = frame.f_back
    raise SinkError(
        "With this version of Spark the sink cannot determine whether a task received all of its rows. Use a "
        "supported version, or delivery=at-least-once."
    )
