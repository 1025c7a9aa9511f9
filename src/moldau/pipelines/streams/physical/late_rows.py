"""The late records of operators that Spark runs itself.

Spark drops what comes behind the watermark and tells only how many rows that were. So when a batch has
dropped some, its part of the topics is read once more, goes through the same steps up to the operator, and
the rows that the operator dropped by its rule are written to the topic of late records. That happens inside
the batch, with a marker of its own: a batch that is run again after a crash writes them if they are not
there yet. Batches without late records cost one look at the operator's metrics.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from moldau.pipelines.source.offsets import from_json, nested
from moldau.pipelines.streams.late import LATE_HEADER, late_topics
from moldau.pipelines.streams.physical.ports import LateRule
from moldau.pipelines.streams.physical.stage_frames import LEG_OPTION, OffsetRange, StageBuilder
from moldau.pipelines.streams.stages import Stage

_QUERY = "sql.streaming.queryId"
_DROPPED = "numRowsDroppedByWatermark"
_SCAN = "StreamingDataSourceV2ScanRelation"
#: Where a partition begins that was not there before.
_EARLIEST = -2
_NO_HEADERS = "cast(array() as array<struct<key: string, value: binary>>)"


@dataclass(frozen=True, slots=True)
class LateRows:
    """Called in the thread of a query when a batch is written; gives what is to be written beside it."""

    builder: StageBuilder
    stage: Stage
    rule: LateRule

    def __call__(self, spark: SparkSession) -> DataFrame | None:
        execution = _execution(self.builder.spark)
        watermark_ms = _watermark_of_dropped(execution.executedPlan())
        operator = self.stage.operator
        if watermark_ms is None or operator is None:
            return None
        again = replace(self.builder, spark=spark, ranges=_ranges(execution.logical()))
        topics = late_topics(self.stage, self.builder.planner.settings)
        ports = again.ports(self.stage, operator, [])
        told = [
            _told(self.rule(port.frame, watermark_ms), topic)
            for port, topic in zip(ports, topics, strict=True)
        ]
        return reduce(DataFrame.union, told)


def _execution(spark: SparkSession) -> Any:
    """The batch at hand of the query in whose thread this runs."""
    query = spark.sparkContext.getLocalProperty(_QUERY)
    return spark._jsparkSession.streams().get(query).streamingQuery().lastExecution()


def _watermark_of_dropped(plan: Any) -> int | None:
    """The watermark by which an operator of the batch has dropped rows, if any has."""
    for node in _nodes(plan):
        metric = node.metrics().get(_DROPPED)
        if metric.isDefined() and metric.get().value() > 0:
            return int(node.eventTimeWatermarkForLateEvents().get())
    return None


def _nodes(plan: Any) -> Iterator[Any]:
    yield plan
    children = plan.children()
    for number in range(children.size()):
        yield from _nodes(children.apply(number))


def _ranges(plan: Any) -> dict[str, OffsetRange]:
    """What the sources of the batch have read, by their legs. A source without new records is not there; of
    a leg that is read for its dead letters too, the operator's own source comes last."""
    found = {}
    for node in _nodes(plan):
        if node.getClass().getSimpleName() == _SCAN:
            leg = node.relation().options().get(LEG_OPTION)
            found[leg] = offset_range(_json(node.startOffset()), _json(node.endOffset()))
    return found


def _json(offset: Any) -> str | None:
    there = offset.get() if offset.isDefined() else None
    return None if there is None else str(there.json())


def offset_range(start: str | None, end: str | None) -> OffsetRange:
    """From the offsets of a batch as its source writes them."""
    before, after = (from_json({} if text is None else json.loads(text)) for text in (start, end))
    starts = {
        place: _EARLIEST if place.topic in after.recreated else before.positions.get(place, _EARLIEST)
        for place in after.positions
    }
    read = {place: stop for place, stop in after.positions.items() if stop != starts[place]}
    return OffsetRange(nested({place: starts[place] for place in read}), nested(read))


def _told(rows: DataFrame, topic: str) -> DataFrame:
    about = F.array(*(_header(name) for name in ("topic", "partition", "offset")))
    return rows.select(
        "key",
        "value",
        F.concat(F.coalesce("headers", F.expr(_NO_HEADERS)), about).alias("headers"),
        "timestamp",
        F.lit(topic).alias("topic"),
        "partition",
    )


def _header(name: str) -> Column:
    value = F.col(name).cast("string").cast("binary")
    return F.struct(F.lit(f"{LATE_HEADER}{name}").alias("key"), value.alias("value"))
