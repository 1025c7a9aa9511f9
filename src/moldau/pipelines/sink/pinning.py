"""Keeps the cut of a query's batches into tasks as it was when the query began.

A batch that is run again must have the tasks it had: each of them may have been written already. The tasks
of a source are in its offsets. Behind a shuffle there are `spark.sql.shuffle.partitions`, which Spark keeps
with the checkpoint only for operators with state; for the others it takes what the session says today, and
with adaptive execution even what the data and the number of cores suggest.

So each query that writes to topics gets, before its first batch, the value from its checkpoint and no
adaptive execution. Spark tells listeners of a new query in the very thread that will run it, and waits for
them: that is when. Where Spark does not let us in (Spark Connect), the sink still finds out that a batch
was cut differently.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from typing import Any

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from moldau.pipelines.sink.lost_input import MAY_BE_LOST, loses_input

_LOG = logging.getLogger(__name__)

SHUFFLE_PARTITIONS = "spark.sql.shuffle.partitions"
#: Set in a session that is watched.
PINNED = "spark.moldau.pinned"
#: The package of tables that Python data sources make; other sinks have no name.
_PYTHON = ".python."

#: Queries that are being started whose sink does not tell that they write to topics.
_names: set[str] = set()


class _Listener:
    """Spark's interface for listeners in Python, without the conversion of events that nobody reads."""

    def __init__(self, spark: SparkSession) -> None:
        self._streams = spark._jsparkSession.streams()

    def onQueryStarted(self, event: Any) -> None:
        try:
            execution = self._streams.get(event.id()).streamingQuery()
            direct = _writes_to_topics(execution.sink())
            if direct or event.name() in _names:
                _pin(execution)
            if direct and loses_input(execution.analyzedPlan()):
                execution.sparkSessionForStream().conf().set(MAY_BE_LOST, "true")
        except Py4JError as error:
            _LOG.warning("The tasks of query %s could not be kept as they were: %s", event.name(), error)

    def onQueryProgress(self, event: Any) -> None:
        """Nothing to do."""

    def onQueryIdle(self, event: Any) -> None:
        """Nothing to do."""

    def onQueryTerminated(self, event: Any) -> None:
        """Nothing to do."""

    class Java:
        implements = ("org.apache.spark.sql.streaming.PythonStreamingQueryListener",)


def keep_tasks(spark: SparkSession) -> None:
    """See to it for all queries of this session that write to topics."""
    if not hasattr(spark, "_jsparkSession") or spark.conf.get(PINNED, "false") == "true":
        return
    from pyspark.java_gateway import ensure_callback_server_started

    context: Any = spark.sparkContext
    ensure_callback_server_started(context._gateway)  # type: ignore[no-untyped-call]
    wrapper = context._jvm.org.apache.spark.sql.streaming.PythonStreamingQueryListenerWrapper
    spark._jsparkSession.streams().addListener(wrapper(_Listener(spark)))
    spark.conf.set(PINNED, "true")


@contextlib.contextmanager
def kept_tasks(name: str) -> Iterator[None]:
    """The query of this name, which is started meanwhile, writes to topics in a function of its own."""
    _names.add(name)
    try:
        yield
    finally:
        _names.discard(name)


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
