"""Sources as views for Spark SQL: topics are read, and what a plan says is run over them."""

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
from moldau.pipelines.sql.run.decoding import rows

_RECORDS = (
    "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, "
    "timestampType int, headers array<struct<key: string, value: binary>>"
)
#: Records as they are read, by the views that show them.
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
        #: Settings of the client beside the address, as Spark's connector names them: `kafka.…`.
        self.client_options = {name: value for name, value in options.items() if name.startswith("kafka.")}
        self._options = dict(options)
        # Views have the same names in every plan: one plan at a time.
        self._lock = lock or threading.Lock()

    def limited(self, records_at_once: int) -> Frames:
        """The same, with so many records in a batch of a stream at most."""
        options = {**self._options, "maxOffsetsPerTrigger": str(records_at_once)}
        return Frames(self.spark, self._bootstrap_servers, options, self._lock)

    def within(self, spark: SparkSession) -> Frames:
        """The same in another session."""
        return Frames(spark, self._bootstrap_servers, self._options)

    def changes(self, plan: Plan) -> DataFrame:
        """All records of the topics that a plan reads: when there are some, something has changed."""
        topics = sorted({given.source.topic for given in plan.inputs})
        return stream_topic(self.spark, self._bootstrap_servers, topics, self._options)

    def now(self, source: Source) -> DataFrame:
        """The records of a source's topic, of a table the last ones of each key."""
        records = read_topic(self.spark, self._bootstrap_servers, source.topic, self._reading(source))
        return latest(records) if source.is_table else records

    def streams(self, plan: Plan, starting: str) -> dict[str, DataFrame]:
        """What a plan reads as streams. Of a table everything counts, also what is older than the query."""
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
        """A part of topics."""
        options = {"kafka.bootstrap.servers": self._bootstrap_servers, **self._options, **part.options()}
        reader = self.spark.read.format(source_format(self.spark)).option("includeHeaders", "true")
        return reader.options(**options).load()

    def _reading(self, source: Source) -> dict[str, str]:
        options = {**self._options}
        # Dead letters keep the headers of the record.
        if source.has_headers or "dead_letter_topic" in source.properties:
            options["includeHeaders"] = "true"
        return options

    def result(self, plan: Plan, starting: str = "earliest", records: Records | None = None) -> DataFrame:
        """What the plan says, over the given records or over those of the topics."""
        return self.query(plan, plan.sql, self.streams(plan, starting) if records is None else records)

    def analyzed(self, plan: Plan) -> DataFrame:
        """The same over nothing, for its columns and for what Spark finds wrong: no topic is looked at."""
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
    """The last record of each key: what a table is."""
    columns = [F.max_by(F.struct(*records.columns), "offset").alias("last")]
    keyed = records.where("key IS NOT NULL").groupBy(F.col("key").alias("__key")).agg(*columns)
    return keyed.select("last.*").where("value IS NOT NULL")
