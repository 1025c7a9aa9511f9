"""Reads the topics of sources as Spark views, and runs the Spark SQL of plans over them."""

from __future__ import annotations

import threading
from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from moldau.pipelines.queries import read_topic, source_format, stream_topic
from moldau.pipelines.source.late_records import LEG_OPTION, OffsetRange
from moldau.pipelines.sql.catalog.catalog import Source
from moldau.pipelines.sql.compile.plan import Input, Plan
from moldau.pipelines.sql.compile.scope import TIME
from moldau.pipelines.sql.run.records import has_framed, rows

_RECORDS = (
    "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, "
    "timestampType int, headers array<struct<key: string, value: binary>>"
)
#: Records by the view that shows them.
Records = Mapping[str, DataFrame]


class Frames:
    """Reads the topics of sources in one session."""

    def __init__(
        self,
        spark: SparkSession,
        bootstrap_servers: str,
        options: Mapping[str, str],
        lock: threading.Lock | None = None,
    ) -> None:
        self.spark = spark
        self._bootstrap_servers = bootstrap_servers
        #: Further configs of the client, by the names of Spark's connector: `kafka.…`.
        self.client_options = {name: value for name, value in options.items() if name.startswith("kafka.")}
        self._options = dict(options)
        # All plans use the same view names, so only one plan at a time can be analyzed.
        self._lock = lock or threading.Lock()

    def limited(self, max_records: int) -> Frames:
        """Return frames that read at most this many records per batch of a stream."""
        options = {**self._options, "maxOffsetsPerTrigger": str(max_records)}
        return Frames(self.spark, self._bootstrap_servers, options, self._lock)

    def within(self, spark: SparkSession) -> Frames:
        """Return frames of another session."""
        return Frames(spark, self._bootstrap_servers, self._options)

    def changes(self, plan: Plan) -> DataFrame:
        """Return the stream of all records of a plan's topics, each of which is a change."""
        topics = sorted({given.source.topic for given in plan.inputs})
        return stream_topic(self.spark, self._bootstrap_servers, topics, self._options)

    def now(self, source: Source) -> DataFrame:
        """Return the current records of a source's topic; for a table, the last record of each key."""
        records = read_topic(self.spark, self._bootstrap_servers, source.topic, self._reading(source))
        return latest(records) if source.is_table else records

    def streams(self, plan: Plan, starting: str) -> dict[str, DataFrame]:
        """Return the streams that a plan reads. Tables are read from the beginning, whatever the offset
        reset."""
        found = {}
        for given in plan.inputs:
            if given.reading == "stream":
                options = self._reading(given.source)
                options["startingOffsets"] = "earliest" if given.source.is_table else starting
                options[LEG_OPTION] = given.view
                topic = given.source.topic
                found[given.view] = stream_topic(self.spark, self._bootstrap_servers, topic, options)
        return found

    def part(self, part: OffsetRange) -> DataFrame:
        """Return the records of an offset range."""
        options = {"kafka.bootstrap.servers": self._bootstrap_servers, **self._options, **part.options()}
        reader = self.spark.read.format(source_format(self.spark)).option("includeHeaders", "true")
        return reader.options(**options).load()

    def _reading(self, source: Source) -> dict[str, str]:
        options = {**self._options}
        # Dead letters keep the record's headers, and schemas of a registry may be named there.
        if source.has_headers or "dead_letter_topic" in source.properties or has_framed(source):
            options["includeHeaders"] = "true"
        return options

    def result(self, plan: Plan, starting: str = "earliest", records: Records | None = None) -> DataFrame:
        """Return the result of a plan, over the given records or those of the topics."""
        return self.query(plan, plan.sql, self.streams(plan, starting) if records is None else records)

    def analyzed(self, plan: Plan) -> DataFrame:
        """Analyze a plan over empty views, for its columns and errors, without reading topics."""
        empty = self.spark.createDataFrame([], _RECORDS)
        return self.query(plan, plan.sql, {given.view: empty for given in plan.inputs})

    def query(self, plan: Plan, sql: str, records: Records, *, whole: bool = False) -> DataFrame:
        with self._lock:
            for given in plan.inputs:
                self._view(given, records.get(given.view), whole=whole)
            return self.spark.sql(sql)

    def _view(self, given: Input, records: DataFrame | None, *, whole: bool) -> None:
        source = given.source
        stream = given.reading == "stream"
        frame = rows(
            self.now(source) if records is None else records,
            source,
            given.view,
            keep_deleted=stream,
            whole=whole and stream,
        )
        if given.watermark_ms is not None and frame.isStreaming:
            frame = frame.withWatermark(TIME, f"{given.watermark_ms} milliseconds")
        frame.createOrReplaceTempView(given.view)


def latest(records: DataFrame) -> DataFrame:
    """Return the last record of each key: the rows of a table."""
    columns = [F.max_by(F.struct(*records.columns), "offset").alias("last")]
    keyed = records.where("key IS NOT NULL").groupBy(F.col("key").alias("__key")).agg(*columns)
    return keyed.select("last.*").where("value IS NOT NULL")
