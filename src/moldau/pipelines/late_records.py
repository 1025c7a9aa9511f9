"""Records that come too late for what Spark computes go to a topic, not to nowhere.

Spark drops what comes behind the watermark and tells only how many rows that were. So when a batch has
dropped some (`dropped`), its part of the topics is read once more (`OffsetRange`), goes through the same
steps, and the rows that were dropped by the rule (`closed_window`, `closed_session`, `behind`) are written to
a topic as they came (`told`). That happens inside the batch, with a marker of its own: a batch that is run
again after a crash writes them if they are not there yet. Batches without late records cost one look at the
metrics of their operators.

A query tells its sources apart by the option `LEG_OPTION`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from moldau.base.offsets import EARLIEST
from moldau.pipelines.source.offsets import from_json, nested
from moldau.pipelines.spark.query_plans import class_name, nodes

#: In front of `topic`, `partition` and `offset`.
LATE_HEADER = "__streams.late."
#: Late records are old by nature: retention by their time would delete them at once.
LATE_CONFIG: Mapping[str, str] = {
    "message.timestamp.type": "CreateTime",
    "cleanup.policy": "delete",
    "retention.ms": "-1",
}
LEG_OPTION = "streams.leg"
_QUERY = "sql.streaming.queryId"
_DROPPED = "numRowsDroppedByWatermark"
_SCAN = "StreamingDataSourceV2ScanRelation"
_NO_HEADERS = "cast(array() as array<struct<key: string, value: binary>>)"


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """A part of topics: where it begins and ends, by topic and partition."""

    start: Mapping[str, Mapping[str, int]]
    end: Mapping[str, Mapping[str, int]]

    def options(self) -> dict[str, str]:
        return {
            "assign": json.dumps({topic: [int(each) for each in ends] for topic, ends in self.end.items()}),
            "startingOffsets": json.dumps(self.start),
            "endingOffsets": json.dumps(self.end),
        }


@dataclass(frozen=True, slots=True)
class Dropped:
    """A batch that has dropped rows: by which watermark, and what its sources have read, by their legs."""

    watermark_ms: int
    ranges: Mapping[str, OffsetRange]


def dropped(spark: SparkSession) -> Dropped | None:
    """Of the batch at hand of the query in whose thread this runs."""
    query = spark.sparkContext.getLocalProperty(_QUERY)
    execution = spark._jsparkSession.streams().get(query).streamingQuery().lastExecution()
    watermark_ms = _watermark_of_dropped(execution.executedPlan())
    return None if watermark_ms is None else Dropped(watermark_ms, _ranges(execution.logical()))


def _watermark_of_dropped(plan: Any) -> int | None:
    """The watermark by which an operator of the batch has dropped rows, if any has."""
    for node in nodes(plan):
        metric = node.metrics().get(_DROPPED)
        if metric.isDefined() and metric.get().value() > 0:
            return int(node.eventTimeWatermarkForLateEvents().get())
    return None


def _ranges(plan: Any) -> dict[str, OffsetRange]:
    """A source without new records is not there; of a leg that is read for its dead letters too, the
    operator's own source comes last."""
    found = {}
    for node in nodes(plan):
        if class_name(node) == _SCAN:
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
        place: EARLIEST if place.topic in after.recreated else before.positions.get(place, EARLIEST)
        for place in after.positions
    }
    read = {place: stop for place, stop in after.positions.items() if stop != starts[place]}
    return OffsetRange(nested({place: starts[place] for place in read}), nested(read))


def closed_window(time: Column, size_ms: int, advance_ms: int, watermark_ms: int) -> Column:
    """Whether a row belongs to a window that Spark has closed: one that ends at the watermark or before. The
    first window of a row is the first to do so, and Kafka has none that begin before the epoch."""
    first = F.greatest(F.unix_millis(time) - F.lit(size_ms - advance_ms), F.lit(0))
    return first - first % advance_ms + size_ms <= watermark_ms


def closed_session(time: Column, gap_ms: int, watermark_ms: int) -> Column:
    """The same of a session, which is that of the row alone. Spark's is a millisecond longer than the gap."""
    return behind(time, watermark_ms - gap_ms - 1)


def behind(time: Column, watermark_ms: int) -> Column:
    """Whether a row is not younger than the watermark: a join of streams drops it."""
    return time <= F.timestamp_millis(F.lit(watermark_ms))


def told(rows: DataFrame, topic: str) -> DataFrame:
    """Late rows as records of their topic, with headers that say where they were read."""
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
