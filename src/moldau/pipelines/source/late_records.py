"""Write late records, which Spark drops, to a topic.

Spark drops rows behind the watermark and reports only their number. If a batch has dropped rows (`dropped`),
its range of the topics is read again (`OffsetRange`), passes through the same operators, and the rows that
the rules select (`closed_window`, `closed_session`, `behind`) are written to a topic (`late_records`). This
happens inside the batch, with its own marker: a replayed batch writes them unless they are already written.
For a batch without late records only the metrics of its operators are read.

The option `LEG_OPTION` identifies the sources of a query.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from moldau.base.offsets import EARLIEST
from moldau.pipelines.source.late_topics import LATE_HEADER
from moldau.pipelines.source.offsets import from_json, nested
from moldau.pipelines.spark.query_plans import class_name, nodes

LEG_OPTION = "streams.leg"
_QUERY = "sql.streaming.queryId"
_DROPPED = "numRowsDroppedByWatermark"
_SCAN = "StreamingDataSourceV2ScanRelation"
_NO_HEADERS = "cast(array() as array<struct<key: string, value: binary>>)"


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """Starting and ending offsets by topic and partition."""

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
    """A batch that has dropped rows: its watermark, and the ranges its sources have read, by leg."""

    watermark_ms: int
    ranges: Mapping[str, OffsetRange]


def dropped(spark: SparkSession) -> Dropped | None:
    """Return the dropped rows of the current batch of the query whose thread calls this; None without any."""
    query = spark.sparkContext.getLocalProperty(_QUERY)
    execution = spark._jsparkSession.streams().get(query).streamingQuery().lastExecution()
    watermark_ms = _watermark_of_dropped(execution.executedPlan())
    return None if watermark_ms is None else Dropped(watermark_ms, _ranges(execution.logical()))


def _watermark_of_dropped(plan: Any) -> int | None:
    """Return the watermark of the first operator that has dropped rows; None if there is none."""
    for node in nodes(plan):
        metric = node.metrics().get(_DROPPED)
        if metric.isDefined() and metric.get().value() > 0:
            return int(node.eventTimeWatermarkForLateEvents().get())
    return None


def _ranges(plan: Any) -> dict[str, OffsetRange]:
    """Return the ranges by leg. A source without new records is absent; if a leg is also read for its dead
    letters, the operator's own source is the last."""
    found = {}
    for node in nodes(plan):
        if class_name(node) == _SCAN:
            leg = node.relation().options().get(LEG_OPTION)
            found[leg] = offset_range(_json(node.startOffset()), _json(node.endOffset()))
    return found


def _json(offset: Any) -> str | None:
    found = offset.get() if offset.isDefined() else None
    return None if found is None else str(found.json())


def offset_range(start: str | None, end: str | None) -> OffsetRange:
    """Return the range between two offsets of a batch, in the JSON of the source."""
    before, after = (from_json({} if text is None else json.loads(text)) for text in (start, end))
    starts = {
        place: EARLIEST if place.topic in after.recreated else before.positions.get(place, EARLIEST)
        for place in after.positions
    }
    read = {place: stop for place, stop in after.positions.items() if stop != starts[place]}
    return OffsetRange(nested({place: starts[place] for place in read}), nested(read))


def closed_window(time: Column, size_ms: int, advance_ms: int, watermark_ms: int) -> Column:
    """Return whether a row belongs to a window that Spark has closed, that is, whose end is not after the
    watermark. The first window of a row closes first; Kafka has no windows before the epoch."""
    first = F.greatest(F.unix_millis(time) - F.lit(size_ms - advance_ms), F.lit(0))
    return first - first % advance_ms + size_ms <= watermark_ms


def closed_session(time: Column, gap_ms: int, watermark_ms: int) -> Column:
    """Return the same for the session of the row alone. Spark's session is a millisecond longer than the
    gap."""
    return behind(time, watermark_ms - gap_ms - 1)


def behind(time: Column, watermark_ms: int) -> Column:
    """Return whether a row is at or before the watermark: a stream-stream join drops it."""
    return time <= F.timestamp_millis(F.lit(watermark_ms))


def late_records(rows: DataFrame, topic: str) -> DataFrame:
    """Return late rows as records for `topic`, with the partition and offset they were read from as
    headers."""
    origin = F.array(*(_header(name) for name in ("topic", "partition", "offset")))
    return rows.select(
        "key",
        "value",
        F.concat(F.coalesce("headers", F.expr(_NO_HEADERS)), origin).alias("headers"),
        "timestamp",
        F.lit(topic).alias("topic"),
        "partition",
    )


def _header(name: str) -> Column:
    value = F.col(name).cast("string").cast("binary")
    return F.struct(F.lit(f"{LATE_HEADER}{name}").alias("key"), value.alias("value"))
