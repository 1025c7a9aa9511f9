"""Reads the topics of origins as frames with the standard columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from moldau.pipelines.queries import source_format
from moldau.pipelines.source.late_records import LEG_OPTION, OffsetRange
from moldau.pipelines.streams.chains.planner import Planner, store_suffix
from moldau.pipelines.streams.chains.program import CHILD_HEADER
from moldau.pipelines.streams.physical.ports import HEADERS_TYPE, SCHEMA
from moldau.pipelines.streams.settings import StreamsSettings
from moldau.pipelines.streams.topology.graph import Node
from moldau.pipelines.streams.topology.operations import Source, TableSource


@dataclass(frozen=True, slots=True)
class SourceReader:
    """Reads topics as streams or, with `ranges`, offset ranges of topics, by the labels of the chains that
    read them."""

    spark: SparkSession
    planner: Planner
    ranges: Mapping[str, OffsetRange] | None = None

    def read(self, origin: Node, label: str) -> DataFrame:
        operation, settings = origin.operation, self.planner.settings
        options = {
            "kafka.bootstrap.servers": settings.bootstrap_servers,
            "includeHeaders": "true",
            **{f"kafka.{key}": value for key, value in settings.client.items()},
        }
        is_internal = not isinstance(operation, Source | TableSource)
        suffix = store_suffix(origin.store) if is_internal else b""
        if self.ranges is not None:
            return self._read_range(self.ranges.get(label), options, suffix)
        if isinstance(operation, Source) and operation.pattern is not None:
            options["subscribePattern"] = operation.pattern
        elif isinstance(operation, Source):
            options["subscribe"] = ",".join(operation.topics)
        else:
            options["subscribe"] = self.planner.topic_of(origin) or ""
        if is_global(origin):
            return _standard(self.spark.read.format(source_format(self.spark)).options(**options).load(), b"")
        options["startingOffsets"] = _starting_offsets(operation, settings)
        options[LEG_OPTION] = label
        if settings.max_offsets_per_trigger is not None:
            options["maxOffsetsPerTrigger"] = str(settings.max_offsets_per_trigger)
        stream = self.spark.readStream.format(source_format(self.spark)).options(**options).load()
        rows = _standard(stream, suffix)
        # A table has no row without a key.
        return rows.filter(F.col("key").isNotNull()) if isinstance(operation, TableSource) else rows

    def _read_range(self, part: OffsetRange | None, options: Mapping[str, str], suffix: bytes) -> DataFrame:
        if part is None or not part.end:
            return self.spark.createDataFrame([], SCHEMA)
        reader = self.spark.read.format(source_format(self.spark)).options(**options, **part.options())
        return _standard(reader.load(), suffix)


def is_global(node: Node) -> bool:
    return isinstance(node.operation, TableSource) and node.operation.is_global


def _starting_offsets(operation: object, settings: StreamsSettings) -> str:
    if isinstance(operation, Source | TableSource):
        return operation.consumed.offset_reset or settings.offset_reset
    return "earliest"


def _standard(frame: DataFrame, suffix: bytes) -> DataFrame:
    key = F.col("key")
    if suffix:
        key = F.expr(f"substring(key, 1, length(key) - {len(suffix)})")
    return frame.select(
        key.alias("key"),
        "value",
        "timestamp",
        F.col("headers").cast(HEADERS_TYPE).alias("headers"),
        "topic",
        "partition",
        "offset",
        F.lit(0).alias("seq"),
    )


def with_child(frame: DataFrame) -> DataFrame:
    """Move the header that names the only child a processor has forwarded a record to into the column
    `child`."""
    named = F.get(F.filter("headers", lambda each: each["key"] == CHILD_HEADER), F.lit(0))
    rest = F.filter("headers", lambda each: each["key"] != CHILD_HEADER)
    child = named["value"].cast("string")
    return frame.withColumn("child", child).withColumn("headers", rest)
