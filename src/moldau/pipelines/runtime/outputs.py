"""Start the queries of a definition.

All topics, including the dead-letter topic, are written by one query in one exactly-once write. Every other
sink has its own query and checkpoint.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import StructField, StructType

from moldau.pipelines.formats.serialization import format_named
from moldau.pipelines.queries import QuerySpec, start
from moldau.pipelines.runtime.checkpoints import refuse_foreign
from moldau.pipelines.runtime.checks import ERROR, RECORD, check_rows
from moldau.pipelines.runtime.definition import BadDefinition, Definition, Sink
from moldau.pipelines.runtime.source_frames import source_frame
from moldau.pipelines.runtime.steps import apply_steps
from moldau.pipelines.sink.dead_letters import dead_letters


def start_definition(
    spark: SparkSession,
    definition: Definition,
    bootstrap_servers: str,
    checkpoints: str,
    kafka_options: Mapping[str, str] | None = None,
) -> list[StreamingQuery]:
    """Start all queries of a definition; stop those already started if one fails.

    `kafka_options` are the defaults of the `kafka.*` options of topics.
    """
    client = {"kafka.bootstrap.servers": bootstrap_servers, **(kafka_options or {})}
    folder = (definition.checkpoint or checkpoints).rstrip("/")
    others = [sink for sink in definition.sinks if sink.topic is None]
    for checkpoint in (folder, *(_other(folder, index) for index in range(len(others)))):
        refuse_foreign(checkpoint, definition)
    frame = source_frame(spark, definition, client)
    good, failed = check_rows(frame, definition.checks, place="source")
    dead = [failed] if failed is not None and definition.dead_letter is not None else []
    rows, more = apply_steps(good, definition)
    topics = [_records(rows, sink, definition) for sink in definition.sinks if sink.topic is not None]
    topics += [_letters(each, definition) for each in [*dead, *more]]
    queries: list[StreamingQuery] = []
    try:
        if topics:
            queries.append(_start_topics(topics, definition, client, folder))
        for index, sink in enumerate(others):
            queries.append(_start_other(rows, sink, definition, _other(folder, index), index))
    except BaseException:
        for query in queries:
            query.stop()
        raise
    return queries


def _other(folder: str, index: int) -> str:
    """Return the checkpoint of a sink that is not a topic."""
    return f"{folder}-{index}"


def _start_topics(
    frames: list[DataFrame], definition: Definition, client: Mapping[str, str], checkpoint: str
) -> StreamingQuery:
    sinks = [sink for sink in definition.sinks if sink.topic is not None]
    modes = {sink.output_mode for sink in sinks} or {"append"}
    if len(modes) > 1:
        raise BadDefinition(
            f"{definition.file}: all topics of a pipeline must have the same output_mode, not {sorted(modes)}"
        )
    options = {**client, **{name: value for sink in sinks for name, value in sink.options.items()}}
    spec = QuerySpec(
        definition.name,
        client["kafka.bootstrap.servers"],
        checkpoint,
        output_mode=modes.pop(),
        trigger=definition.trigger,
        exactly_once=definition.exactly_once,
        options=options,
    )
    return start(reduce(lambda left, right: left.unionByName(right, True), frames), spec)


def _start_other(
    rows: DataFrame, sink: Sink, definition: Definition, checkpoint: str, index: int
) -> StreamingQuery:
    columns = [name for name in rows.columns if name != RECORD or sink.format == "console"]
    writer = (
        rows.select(*columns)
        .writeStream.queryName(f"{definition.name}.{sink.format}" + (f".{index}" if index else ""))
        .format(sink.format or "")
        .outputMode(sink.output_mode)
        .option("checkpointLocation", checkpoint)
        .options(**sink.options)
        .trigger(**definition.trigger)
    )
    if sink.partition_by:
        writer = writer.partitionBy(*sink.partition_by)
    return writer.start(sink.path) if sink.path else writer.start()


def _letters(frame: DataFrame, definition: Definition) -> DataFrame:
    return dead_letters(
        frame, record=RECORD, error=ERROR, pipeline=definition.name, topic=definition.dead_letter or ""
    )


def _records(rows: DataFrame, sink: Sink, definition: Definition) -> DataFrame:
    """Return rows as records for a topic."""
    columns = [F.lit(sink.topic).alias("topic"), _value(rows, sink, definition).alias("value")]
    key = _key(rows, sink)
    if key is not None:
        columns.append(key.alias("key"))
    if sink.format is None and "headers" in rows.columns:
        columns.append(F.col("headers"))
    return rows.select(*columns)


def _value(rows: DataFrame, sink: Sink, definition: Definition) -> Column:
    if sink.format is None:
        if "value" not in rows.columns:
            raise BadDefinition(
                f"{definition.file}: the sink {sink.topic} has no format, so the rows need a column 'value'; "
                f"their columns are {', '.join(rows.columns)}"
            )
        return F.col("value").cast("binary")
    fields = [field for field in rows.schema.fields if field.name != RECORD]
    struct = F.struct(*(F.col(f"`{field.name}`") for field in fields))
    return format_named(sink.format, sink.options, topic=sink.topic).encode(struct, StructType(fields))


def _key(rows: DataFrame, sink: Sink) -> Column | None:
    if sink.key is None:
        if RECORD in rows.columns:
            return F.col(f"{RECORD}.key")
        return F.col("key").cast("binary") if sink.format is None and "key" in rows.columns else None
    kind = rows.select(F.expr(sink.key).alias("key")).schema["key"].dataType
    fields = list(kind.fields) if isinstance(kind, StructType) else [StructField("key", kind)]
    value = F.expr(sink.key)
    struct = value if isinstance(kind, StructType) else F.struct(value.alias("key"))
    name = "json" if isinstance(kind, StructType) and sink.key_format == "kafka" else sink.key_format
    return format_named(name, sink.options, topic=sink.topic, key=True).encode(struct, StructType(fields))
