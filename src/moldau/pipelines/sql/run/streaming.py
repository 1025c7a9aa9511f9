"""Starts the Spark queries of persistent queries, with their dead letters and late records.

A record that arrives too late for a window or a join is written to the topic `<catalog topic>-<sink>-late`,
such as `_moldau_sql-minutes-late` (see `late_records`). All queries that write to a sink share its topic;
headers identify the topic, partition and offset of the record.

Joins and aggregates of tables are recomputed when a table changes, and the differences are written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from moldau.pipelines.queries import QuerySpec, start
from moldau.pipelines.source.late_records import (
    OffsetRange,
    behind,
    closed_session,
    closed_window,
    dropped,
    late_records,
)
from moldau.pipelines.sql.catalog.catalog import Catalog, PersistentQuery, Source
from moldau.pipelines.sql.compile.compiler import compile_select
from moldau.pipelines.sql.compile.plan import KEEP, RECORD, Late, Plan
from moldau.pipelines.sql.compile.scope import TIME
from moldau.pipelines.sql.compile.sinks import output_names
from moldau.pipelines.sql.errors import SqlError
from moldau.pipelines.sql.parse.parser import parse
from moldau.pipelines.sql.parse.statements import CreateAs, InsertSelect
from moldau.pipelines.sql.run.frames import Frames, Records
from moldau.pipelines.sql.run.records import as_records, unreadable


def start_query(
    frames: Frames,
    query: PersistentQuery,
    catalog: Catalog,
    *,
    bootstrap_servers: str,
    checkpoint: str,
    catalog_topic: str,
) -> StreamingQuery:
    """Compile a persistent query and start it."""
    statement = next(parse(query.statement))
    sink = catalog.get(query.sink)
    if not isinstance(statement, CreateAs | InsertSelect) or sink is None:
        raise SqlError(f"The sink of query {query.id} does not exist; run TERMINATE {query.id}")
    plan = compile_select(statement.select, catalog, "persist")
    names = output_names(plan, sink)
    spec = QuerySpec(
        name=query.id,
        bootstrap_servers=bootstrap_servers,
        checkpoint=checkpoint,
        topic=sink.topic,
        output_mode="append" if plan.running == "append" else "update",
        trigger={"processingTime": query.properties.get("trigger", "1 second")},
        exactly_once=query.properties.get("exactly.once", "true") == "true",
        options=frames.client_options,
    )
    if plan.running == "recompute":
        return start(frames.changes(plan), spec, each_batch=Recomputed(frames, plan, sink, names))
    starting = query.properties.get("auto.offset.reset", "latest")
    read = frames.streams(plan, starting)
    records = as_records(frames.result(plan, records=read), sink, names)
    records = _with_topics(records, read, plan, sink.topic, query.id)
    late = LateRecords(frames, plan, late_topic(catalog_topic, sink.name))
    spec = replace(spec, topic=None) if "topic" in records.columns else spec
    return start(records, spec, beside=late if plan.late else None)


def _with_topics(records: DataFrame, read: Records, plan: Plan, topic: str, query_id: str) -> DataFrame:
    """Unite the results with the dead letters of the sources. A query that writes to several topics, such as
    one with late records, names the topic in every row."""
    if plan.late:
        records = records.withColumn("topic", F.lit(topic))
    for given in plan.inputs:
        letters = given.source.properties.get("dead_letter_topic")
        if letters is not None and given.view in read:
            failed = unreadable(read[given.view], given.source, letters, query_id)
            if "topic" not in records.columns:
                records = records.withColumn("topic", F.lit(topic))
            records = records.unionByName(failed, allowMissingColumns=True)
    return records


def late_topic(catalog_topic: str, sink: str) -> str:
    return f"{catalog_topic}-{sink}-late"


@dataclass(frozen=True, slots=True)
class LateRecords:
    """Finds the late records that Spark has dropped from a batch. It is called in the thread of the query
    when the batch is written, and returns the records for the topic."""

    frames: Frames
    plan: Plan
    topic: str

    def __call__(self, spark: SparkSession) -> DataFrame | None:
        late = dropped(self.frames.spark)
        if late is None:
            return None
        found = [
            self._of_input(one, late.ranges, late.watermark_ms, self.frames.within(spark))
            for one in self.plan.late
            if self._streams(one) <= {view for view, part in late.ranges.items() if part.end}
        ]
        # The topic may have another number of partitions than the sources, so records are partitioned by key.
        return reduce(DataFrame.union, found).drop("partition") if found else None

    def _streams(self, late: Late) -> set[str]:
        return {one.view for one in self.plan.inputs if one.view in late.views and one.reading == "stream"}

    def _of_input(
        self, late: Late, ranges: Mapping[str, OffsetRange], watermark_ms: int, frames: Frames
    ) -> DataFrame:
        plan = replace(self.plan, inputs=tuple(one for one in self.plan.inputs if one.view in late.views))
        records = {view: frames.part(ranges[view]) for view in self._streams(late)}
        rows = frames.query(plan, late.sql, records, whole=True).where(_closed(late, watermark_ms))
        return late_records(rows.select(f"{RECORD}.*"), self.topic)


def _closed(late: Late, watermark_ms: int) -> Column:
    window, time = late.window, F.col(TIME)
    if window is None:
        return behind(time, watermark_ms)
    if window.kind == "SESSION":
        return closed_session(time, window.size_ms, watermark_ms)
    return closed_window(time, window.size_ms, window.advance_ms or window.size_ms, watermark_ms)


@dataclass(frozen=True, slots=True)
class Recomputed:
    """Computes the result again for every batch of changes, and returns the differences to the sink. `names`
    are the names of the plan's columns by those of the sink."""

    frames: Frames
    plan: Plan
    sink: Source
    names: Mapping[str, str]

    def __call__(self, _: DataFrame) -> DataFrame:
        result = self.frames.result(self.plan)
        new = as_records(result.where(KEEP), self.sink, self.names).select(
            F.col("key").alias("__new"), F.col("value").alias("__value"), "timestamp"
        )
        old = self.frames.now(self.sink).select("key", "value")
        both = new.join(old, F.col("__new") == F.col("key"), "full_outer")
        changed = both.where(~F.col("__value").eqNullSafe(F.col("value")))
        return changed.select(
            F.coalesce("__new", "key").alias("key"),
            F.col("__value").alias("value"),
            F.coalesce("timestamp", F.current_timestamp()).alias("timestamp"),
        )
