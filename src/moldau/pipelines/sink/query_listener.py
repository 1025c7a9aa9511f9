"""Keep the partitioning of batches the same when they are replayed: settings of a query when it starts.

**Pinned tasks.** A replayed batch must have the tasks it had: each of them may have been written already. The
tasks of a source are part of its offsets. After a shuffle there are `spark.sql.shuffle.partitions` tasks,
which Spark restores from the checkpoint only for stateful operators; for others it uses the session's current
value, and with adaptive execution a number derived from data and cores. So each query that writes to topics
gets the value of its checkpoint, and no adaptive execution, before its first batch. Spark notifies listeners
of a new query in the thread that will run it, and waits for them. Spark Connect has no such listener; there
the sink still detects that a batch is partitioned differently.

**Lost input.** With `failOnDataLoss=false` a source skips records that retention has deleted. If it deletes
records of a batch of which some tasks are written and others are not, the replayed batch has fewer rows, and
a task that was written finds a larger count in its marker. Its partitioning is the same nevertheless: a row
belongs to the task of its offset range, or of the hash of its columns, independently of other rows. So the
written tasks stay as they are and the others write the remaining rows: nothing is lost but what the source
lost, and nothing is duplicated. After `repartition` without columns, `repartitionByRange` and `orderBy` a
missing row moves others, and the query stops, as it does if a task has more rows than before. The plan is
inspected when the query starts; tasks find the result in a setting of its session. The function of a
`foreachBatch` cannot be inspected: there the option `failOnDataLoss` of the sink applies.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from typing import Any

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from moldau.pipelines.sink.options import SinkOptions
from moldau.pipelines.sink.task_context import local_property
from moldau.pipelines.spark.query_plans import class_name, nodes

logger = logging.getLogger(__name__)

SHUFFLE_PARTITIONS = "spark.sql.shuffle.partitions"
#: Set in a session that has the listener.
PINNED = "spark.moldau.pinned"
#: Set in the session of a query whose input may have been lost.
MAY_BE_LOST = "spark.moldau.inputMayBeLost"

#: In the class name of tables of Python data sources; other sinks have no name.
_PYTHON = ".python."
_SOURCE, _OPTION = "StreamingRelationV2", "failOnDataLoss"

#: Queries that are being started and write to topics inside `foreachBatch`.
_foreach_batch_queries: set[str] = set()


class _Listener:
    """A streaming query listener that, unlike PySpark's, does not convert the events."""

    def __init__(self, spark: SparkSession) -> None:
        self._streams = spark._jsparkSession.streams()

    def onQueryStarted(self, event: Any) -> None:
        try:
            execution = self._streams.get(event.id()).streamingQuery()
            direct = _writes_to_topics(execution.sink())
            if direct or event.name() in _foreach_batch_queries:
                _pin(execution)
            if direct and may_lose_input(execution.analyzedPlan()):
                execution.sparkSessionForStream().conf().set(MAY_BE_LOST, "true")
        except Py4JError as error:
            logger.warning("The number of tasks of query %s is not pinned: %s", event.name(), error)

    def onQueryProgress(self, event: Any) -> None:
        """Ignore the event."""

    def onQueryIdle(self, event: Any) -> None:
        """Ignore the event."""

    def onQueryTerminated(self, event: Any) -> None:
        """Ignore the event."""

    class Java:
        implements = ("org.apache.spark.sql.streaming.PythonStreamingQueryListener",)


def pin_tasks(spark: SparkSession) -> None:
    """Pin the tasks of all queries of this session that write to topics."""
    if not hasattr(spark, "_jsparkSession") or spark.conf.get(PINNED, "false") == "true":
        return
    add_listener(spark, _Listener(spark))
    spark.conf.set(PINNED, "true")


def add_listener(spark: SparkSession, listener: Any) -> None:
    """Add an object with the methods of `_Listener` to the streaming queries of a session."""
    from pyspark.java_gateway import ensure_callback_server_started

    context: Any = spark.sparkContext
    ensure_callback_server_started(context._gateway)  # type: ignore[no-untyped-call]
    wrapper = context._jvm.org.apache.spark.sql.streaming.PythonStreamingQueryListenerWrapper
    spark._jsparkSession.streams().addListener(wrapper(listener))


@contextlib.contextmanager
def starts_foreach_batch(name: str) -> Iterator[None]:
    """Mark the query of this name, started in the block, as one that writes to topics in `foreachBatch`."""
    _foreach_batch_queries.add(name)
    try:
        yield
    finally:
        _foreach_batch_queries.discard(name)


def input_may_be_lost(options: SinkOptions) -> bool:
    """Return, in a task, whether rows may be missing that an earlier attempt had."""
    return local_property(MAY_BE_LOST) == "true" or not options.fail_on_data_loss


def may_lose_input(plan: Any) -> bool:
    """Return whether a query may lose rows without moving others to another task."""
    found = list(nodes(plan))
    return any(map(_ignores_data_loss, found)) and not any(map(_moves_rows, found))


def _ignores_data_loss(node: Any) -> bool:
    if class_name(node) != _SOURCE:
        return False
    return str(node.extraOptions().getOrDefault(_OPTION, "true")).strip().lower() == "false"


def _moves_rows(node: Any) -> bool:
    """Return whether the task of a row depends on the other rows."""
    name = class_name(node)
    if name == "Repartition":
        return bool(node.shuffle())
    if name == "RepartitionByExpression":
        expressions = node.partitionExpressions()
        return bool(expressions.isEmpty()) or class_name(expressions.head()) == "SortOrder"
    return name == "RebalancePartitions" or (name == "Sort" and bool(getattr(node, "global")()))


def _writes_to_topics(sink: Any) -> bool:
    return _PYTHON in sink.getClass().getName() and sink.name() == "moldau"


def _pin(execution: Any) -> None:
    conf = execution.sparkSessionForStream().conf()
    conf.set("spark.sql.adaptive.enabled", "false")
    latest = execution.offsetLog().getLatest()
    if not latest.isDefined():
        return
    kept = latest.get()._2().metadataOpt().get().conf().get(SHUFFLE_PARTITIONS)
    if kept.isDefined():
        conf.set(SHUFFLE_PARTITIONS, kept.get())
