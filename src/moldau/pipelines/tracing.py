"""Spans of micro-batches (`spark.moldau.traces.otlp.endpoint`), imported only if they are exported.

A listener records a span for every batch that has read records of topics, with the query's name, the ranges
of offsets and the number of records. It has links to the producers of some of its records: the listener
fetches the first batch of a few ranges again, because the tasks, which read them, do not decode headers.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from opentelemetry.trace import SpanKind
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from moldau.base.errors import KafkaError
from moldau.client.batches.reader import OffsetRange, ReadOptions, read_batches
from moldau.pipelines.options import InvalidOption
from moldau.pipelines.runtime.progress import progress_rows
from moldau.pipelines.sink.query_listener import add_listener
from moldau.pipelines.source.errors import ForeignCheckpoint
from moldau.pipelines.source.offsets import from_json
from moldau.pipelines.source.options import SourceOptions, read_options
from moldau.pipelines.source.planning import Range, ranges
from moldau.pipelines.spark.query_plans import class_name, nodes
from moldau.tracing import attributes
from moldau.tracing.contexts import TraceContext, batch_contexts
from moldau.tracing.spans import SpanExport

logger = logging.getLogger(__name__)

#: Set in a session that has the listener.
_TRACED: Final = "spark.moldau.traced"
_SOURCE: Final = "StreamingRelationV2"
_SERVERS: Final = "kafka.bootstrap.servers"
#: Ranges of offsets that a span names.
_MAX_NAMED: Final = 100
_TIMEOUT_MS: Final = 2000
_FETCH_BYTES: Final = 64 * 1024


def trace_queries(spark: SparkSession, endpoint: str) -> None:
    """Record the batches of all queries of this session. Spark Connect has no listeners of this kind."""
    if not hasattr(spark, "_jsparkSession") or spark.conf.get(_TRACED, "false") == "true":
        return
    add_listener(spark, _Listener(spark, SpanExport(endpoint, "moldau-pipelines")))
    spark.conf.set(_TRACED, "true")


class _Listener:
    """A streaming query listener, as the one in `sink/query_listener.py`."""

    def __init__(self, spark: SparkSession, export: SpanExport) -> None:
        self._streams = spark._jsparkSession.streams()
        self._export = export
        #: The sources of the running queries, by query id.
        self._sources: dict[str, SourceOptions] = {}

    def onQueryStarted(self, event: Any) -> None:
        try:
            plan = self._streams.get(event.id()).streamingQuery().analyzedPlan()
            source = next(_topic_sources(plan), None)
        except (Py4JError, InvalidOption) as error:
            logger.warning("The spans of query %s will have no links: %s", event.name(), error)
        else:
            if source is not None:
                self._sources[str(event.id())] = source

    def onQueryProgress(self, event: Any) -> None:
        progress = json.loads(event.progress().json())
        planned = [each for source in progress["sources"] for each in _ranges(source)]
        if planned:
            self._record(progress, planned)

    def onQueryIdle(self, event: Any) -> None:
        """Ignore the event."""

    def onQueryTerminated(self, event: Any) -> None:
        self._sources.pop(str(event.id()), None)

    def _record(self, progress: Mapping[str, Any], planned: list[Range]) -> None:
        source = self._sources.get(progress["id"])
        name = progress.get("name") or progress["id"]
        start_ns = int(datetime.fromisoformat(progress["timestamp"]).timestamp() * 1e6) * 1000
        duration_ms = int(progress.get("durationMs", {}).get("triggerExecution", 0))
        details: dict[str, str | int] = {
            attributes.SYSTEM: attributes.KAFKA,
            attributes.OPERATION_NAME: "micro-batch",
            attributes.OPERATION_TYPE: attributes.PROCESS,
            attributes.RECORDS: progress_rows(progress),
            attributes.QUERY: name,
            attributes.BATCH: progress["batchId"],
            attributes.OFFSETS: " ".join(
                f"{each.partition}:{each.start}-{each.end}" for each in planned[:_MAX_NAMED]
            ),
        }
        topics = {each.partition.topic for each in planned}
        if len(topics) == 1:
            details[attributes.TOPIC] = topics.pop()
        self._export.record(
            f"process {name}",
            SpanKind.CONSUMER,
            details,
            start_ns=start_ns,
            end_ns=start_ns + duration_ms * 1_000_000,
            links=[] if source is None else _producers(source, planned),
        )

    class Java:
        implements = ("org.apache.spark.sql.streaming.PythonStreamingQueryListener",)


def _topic_sources(plan: Any) -> Iterator[SourceOptions]:
    for node in nodes(plan):
        if class_name(node) == _SOURCE and node.extraOptions().containsKey(_SERVERS):
            yield read_options(dict(node.extraOptions().asCaseSensitiveMap()), stream=True)


def _ranges(source: Mapping[str, Any]) -> list[Range]:
    """Return what a batch has read of topics; nothing for other sources."""
    start, end = source.get("startOffset") or {}, source.get("endOffset")
    try:
        return [] if not isinstance(end, dict) else ranges(from_json(start).positions, from_json(end))
    except ForeignCheckpoint:
        return []


def _producers(source: SourceOptions, planned: list[Range]) -> list[TraceContext]:
    """Return the trace contexts of the first records of the first ranges."""
    try:
        return batch_contexts(_first_batches(source, planned))
    except KafkaError as error:
        logger.debug("The producers of a batch cannot be looked up: %s", error)
        return []


def _first_batches(source: SourceOptions, planned: list[Range]) -> Iterator[memoryview]:
    settings = replace(source.settings, api_timeout_ms=_TIMEOUT_MS, request_timeout_ms=_TIMEOUT_MS)
    options = ReadOptions(
        read_committed=source.read_committed, max_bytes=_FETCH_BYTES, patience_ms=_TIMEOUT_MS
    )
    for partition, start, _ in planned:
        # The range of one offset: nothing is read ahead.
        for fetched in read_batches(settings, OffsetRange(partition, start, start + 1), options):
            yield fetched.data
