"""Topics as data frames, and streaming queries that write to topics: the base of streams, SQL and runtime.

A frame to write has the columns of Spark's Kafka connector: `value`, and optionally `key`, `headers`,
`timestamp`, `partition` and `topic` (required if the query names no topic). So one query can write to many
topics; with `exactly_once` all outputs of a task of a batch appear together or not at all.

The append mode uses the streaming sink. Spark does not allow update mode for Python sinks, so `update` and
`complete` use `foreachBatch` with the batch writer, which finds query and batch id in the task's context and
gives the same guarantee.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.session import SparkSession as ClassicSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from moldau.pipelines.sink.query_listener import pin_tasks, starts_foreach_batch

OutputMode = Literal["append", "update", "complete"]

#: The connector of a session: `moldau`, or `official` for Spark's Kafka connector, which needs its jars.
CONNECTOR = "spark.moldau.connector"
HEADERS = "headers"


def activate(spark: SparkSession) -> None:
    """Make the session active in this thread: Spark looks up formats in the active session."""
    if isinstance(spark, ClassicSession):
        ClassicSession._get_j_spark_session_class(spark._jvm).setActiveSession(spark._jsparkSession)


def source_format(spark: SparkSession) -> str:
    """Return the format name of the session's connector."""
    return "kafka" if spark.conf.get(CONNECTOR, "moldau") == "official" else "moldau"


def stream_topic(
    spark: SparkSession,
    bootstrap_servers: str,
    topics: str | Sequence[str],
    options: Mapping[str, str] | None = None,
) -> DataFrame:
    """Return topics as a stream, from the earliest offsets unless `startingOffsets` is set."""
    reader = spark.readStream.format(source_format(spark)).options(
        **{**_subscription(bootstrap_servers, topics), **(options or {})}
    )
    return reader.load()


def read_topic(
    spark: SparkSession,
    bootstrap_servers: str,
    topics: str | Sequence[str],
    options: Mapping[str, str] | None = None,
) -> DataFrame:
    """Return the current records of topics."""
    reader = spark.read.format(source_format(spark)).options(
        **{**_subscription(bootstrap_servers, topics), **(options or {})}
    )
    return reader.load()


def without_null_headers(frame: DataFrame) -> DataFrame:
    """Return the frame with an empty list where a row has no headers.

    For every row that Spark adds to an Arrow batch for Python, it computes the size of the batch. A list that
    is null makes it go over all earlier rows again: the time grows with the square of the rows.
    """
    if HEADERS not in frame.columns:
        return frame
    empty = F.array().cast(frame.schema[HEADERS].dataType)
    return frame.withColumn(HEADERS, F.coalesce(F.col(HEADERS), empty))


@dataclass(frozen=True, slots=True)
class QuerySpec:
    """A streaming query that writes to topics. Its name is also the name of its consumer group."""

    name: str
    bootstrap_servers: str
    checkpoint: str
    topic: str | None = None
    output_mode: OutputMode = "append"
    #: The arguments of `DataStreamWriter.trigger`: {"processingTime": "1 second"}, {"availableNow": True}.
    trigger: Mapping[str, Any] = field(default_factory=lambda: {"processingTime": "1 second"})
    exactly_once: bool = True
    #: Other options of the sink.
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    def sink_options(self) -> dict[str, str]:
        options = {"kafka.bootstrap.servers": self.bootstrap_servers, **self.options}
        options["delivery"] = "exactly-once" if self.exactly_once else "at-least-once"
        if self.topic is not None:
            options["topic"] = self.topic
        return options


def start(
    frame: DataFrame,
    spec: QuerySpec,
    each_batch: Callable[[DataFrame], DataFrame] | None = None,
    beside: Callable[[SparkSession], DataFrame | None] | None = None,
) -> StreamingQuery:
    """Start the query. With `each_batch`, its result for a batch is written instead of the batch. The frame
    that `beside` returns is written after every batch, before the batch is committed."""
    activate(frame.sparkSession)
    writer = (
        without_null_headers(frame)
        .writeStream.queryName(spec.name)
        .outputMode(spec.output_mode)
        .option("checkpointLocation", spec.checkpoint)
        .trigger(**spec.trigger)
    )
    format_name = source_format(frame.sparkSession)
    if format_name == "moldau":
        pin_tasks(frame.sparkSession)
    # Spark's Kafka sink supports update mode, and only at-least-once delivery.
    direct = each_batch is None and beside is None
    if direct and (spec.output_mode == "append" or format_name != "moldau"):
        return writer.format(format_name).options(**spec.sink_options()).start()
    return _start_batches(writer, spec, format_name, each_batch, beside)


def _start_batches(
    writer: DataStreamWriter,
    spec: QuerySpec,
    format_name: str,
    each_batch: Callable[[DataFrame], DataFrame] | None,
    beside: Callable[[SparkSession], DataFrame | None] | None,
) -> StreamingQuery:
    def save(frame: DataFrame, sink: str) -> None:
        options = {"sinkId": sink, **spec.sink_options()}
        frame.write.format(format_name).mode("append").options(**options).save()

    def write(batch: DataFrame, _: int) -> None:
        save(batch if each_batch is None else each_batch(batch), "updates")
        more = None if beside is None else beside(batch.sparkSession)
        if more is not None:
            save(more, "beside")

    with starts_foreach_batch(spec.name):
        return writer.foreachBatch(write).start()


def _subscription(bootstrap_servers: str, topics: str | Sequence[str]) -> dict[str, str]:
    names = topics if isinstance(topics, str) else ",".join(topics)
    return {
        "kafka.bootstrap.servers": bootstrap_servers,
        "subscribe": names,
        "startingOffsets": "earliest",
    }
