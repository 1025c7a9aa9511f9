"""The late records of operators that Spark runs itself (see `late_records`), by the stage's topics."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce

from pyspark.sql import DataFrame, SparkSession

from moldau.pipelines.source.late_records import dropped, late_records
from moldau.pipelines.streams.physical.ports import LateRule
from moldau.pipelines.streams.physical.stage_frames import StageBuilder
from moldau.pipelines.streams.topology.late import late_topics
from moldau.pipelines.streams.topology.stages import Stage


@dataclass(frozen=True, slots=True)
class LateRows:
    """Called in the thread of a query when a batch is written; gives what is to be written beside it."""

    builder: StageBuilder
    stage: Stage
    rule: LateRule

    def __call__(self, spark: SparkSession) -> DataFrame | None:
        late, operator = dropped(self.builder.spark), self.stage.operator
        if late is None or operator is None:
            return None
        again = replace(self.builder, spark=spark, ranges=late.ranges)
        topics = late_topics(self.stage, self.builder.planner.settings)
        ports = again.ports(self.stage, operator, [])
        rows = [
            late_records(self.rule(port.frame, late.watermark_ms), topic)
            for port, topic in zip(ports, topics, strict=True)
        ]
        return reduce(DataFrame.union, rows)
