"""Which task of which batch of which query this is, as Spark tells the task.

Spark runs a batch again if its end is missing in the checkpoint: the same query and batch then, in another
run. All of it is in the local properties that Spark's stream thread hands down, also to writes inside
`foreachBatch`.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark import TaskContext

_QUERY, _BATCH, _RUN = "sql.streaming.queryId", "streaming.sql.batchId", "spark.jobGroup.id"
_WRITE = "spark.sql.execution.id"
_ADAPTIVE, _ADAPTIVE_STREAMS = "spark.sql.adaptive.enabled", "spark.sql.adaptive.streaming.stateless.enabled"


@dataclass(frozen=True, slots=True)
class TaskIdentity:
    """`query` lives as long as its checkpoint, `run` as long as the query runs, `write` once."""

    query: str
    run: str
    write: str
    batch: int
    task: int

    def name(self, sink: str) -> str:
        """The transactional id of the task, and the group of its marker."""
        return "-".join(["moldau", self.query, *([sink] if sink else []), str(self.task)])


def task_identity() -> TaskIdentity | None:
    """None outside of a streaming query."""
    context = TaskContext.get()
    if context is None:
        return None
    query, batch = _property(context, _QUERY), _property(context, _BATCH)
    if query is None or batch is None:
        return None
    return TaskIdentity(
        query=query,
        run=_property(context, _RUN) or "",
        write=_property(context, _WRITE) or "",
        batch=int(batch),
        task=context.partitionId(),
    )


def adaptive(*, stream: bool) -> str | None:
    """The setting that lets Spark change the number of tasks while it runs, if it may."""
    context = TaskContext.get()
    if context is None or _property(context, _ADAPTIVE) == "false":
        return None
    if not stream:
        return _ADAPTIVE
    return None if _property(context, _ADAPTIVE_STREAMS) == "false" else _ADAPTIVE_STREAMS


def _property(context: TaskContext, name: str) -> str | None:
    value: str | None = context.getLocalProperty(name)
    return value
