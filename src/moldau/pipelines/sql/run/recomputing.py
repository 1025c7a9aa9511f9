"""Joins and aggregates of tables are computed again when a table has changed, and what differs is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from moldau.pipelines.sql.catalog.catalog import Source
from moldau.pipelines.sql.compile.plan import KEEP, Plan
from moldau.pipelines.sql.run.encoding import as_records
from moldau.pipelines.sql.run.frames import Frames


@dataclass(frozen=True, slots=True)
class Recomputed:
    """Called for every batch of changes; what has to be written so that the sink's table becomes what the
    query gives now. `names`: the column of the sink -> that of the plan."""

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
