"""Records that come too late for a window or a join of a persistent query go to a topic (`late_records`).

It is `<topic of the catalog>-<sink>-late`, such as `_moldau_sql-minutes-late`, one for all that is written to
a sink; headers say which topic, partition and offset a record comes from.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from moldau.pipelines.source.late_records import (
    OffsetRange,
    behind,
    closed_session,
    closed_window,
    dropped,
    late_records,
)
from moldau.pipelines.sql.compile.plan import RECORD, Late, Plan
from moldau.pipelines.sql.compile.scope import TIME
from moldau.pipelines.sql.run.frames import Frames


def late_topic(catalog_topic: str, sink: str) -> str:
    return f"{catalog_topic}-{sink}-late"


@dataclass(frozen=True, slots=True)
class LateRecords:
    """Called in the thread of a query when a batch is written; gives what is to be written beside it."""

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
        # Partitions may be others than those of the sources, so the key decides.
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
