"""Summarize the progress of a query: rows, rates, lag by partition, durations, watermark, state.

Rows are counted by offsets where possible: Spark counts a source twice if a query uses it twice.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from moldau.pipelines.source.offsets import EXTRA

Offsets = dict[str, dict[str, int]]

#: The count of checked rows.
ROWS = "rows"


@dataclass(slots=True)
class Summary:
    """The progress of a query up to its last batch."""

    query: str
    batch: int = -1
    batches: int = 0
    rows: int = 0
    rows_per_second: float = 0.0
    batch_ms: int = 0
    #: Records not yet read, by topic and partition.
    lag: Offsets = field(default_factory=dict)
    state_rows: int = 0
    watermark: str | None = None
    #: The counts of checks, by name.
    counts: dict[str, int] = field(default_factory=dict)

    @property
    def total_lag(self) -> int:
        return sum(number for partitions in self.lag.values() for number in partitions.values())

    def add(self, recent: Iterable[Mapping[str, Any]]) -> bool:
        """Add the batches that are not counted yet; return whether there were any."""
        is_new = False
        for progress in recent:
            if progress["batchId"] > self.batch or (
                progress["batchId"] == self.batch and not progress_rows(progress)
            ):
                is_new = is_new or progress["batchId"] > self.batch
                self._add(progress)
        return is_new

    def _add(self, progress: Mapping[str, Any]) -> None:
        if progress["batchId"] > self.batch:
            self.batches += 1
            rows = progress_rows(progress)
            self.rows += rows
            duration = int(progress.get("durationMs", {}).get("triggerExecution", 0))
            self.batch_ms = duration
            self.rows_per_second = rows * 1000 / duration if duration else 0.0
            for counts in observed(progress):
                for name in counts.keys() - {ROWS}:
                    self.counts[name] = self.counts.get(name, 0) + counts[name]
        else:
            # A trigger without new data.
            self.rows_per_second = 0.0
        self.batch = progress["batchId"]
        self.lag = lag(progress["sources"])
        self.state_rows = sum(int(each.get("numRowsTotal", 0)) for each in progress.get("stateOperators", ()))
        self.watermark = progress.get("eventTime", {}).get("watermark", self.watermark)


def progress_rows(progress: Mapping[str, Any]) -> int:
    return sum(_source_rows(source) for source in progress["sources"])


def _source_rows(source: Mapping[str, Any]) -> int:
    start, end = offsets_of(source.get("startOffset")), offsets_of(source.get("endOffset"))
    if end is None:
        return int(source.get("numInputRows", 0))
    extra = _first(source.get("endOffset"))
    begin = start or extra
    if begin is None:
        return int(source.get("numInputRows", 0))
    return sum(
        offset - begin.get(topic, {}).get(partition, 0)
        for topic, partitions in end.items()
        for partition, offset in partitions.items()
    )


def lag(sources: Sequence[Mapping[str, Any]]) -> Offsets:
    """Return the lag of the sources by partition; each partition is counted once."""
    behind: Offsets = {}
    for source in sources:
        end, latest = offsets_of(source.get("endOffset")), offsets_of(source.get("latestOffset"))
        if end is None or latest is None:
            continue
        for topic, partitions in latest.items():
            for partition, offset in partitions.items():
                reached = end.get(topic, {}).get(partition, 0)
                behind.setdefault(topic, {})[partition] = max(offset - reached, 0)
    return behind


def watermark_seconds(text: str) -> float:
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def offsets_of(value: Any) -> Offsets | None:
    """Return the offsets of a source that reads topics; None for other sources."""
    found = _parsed(value)
    if found is None:
        return None
    topics = {topic: partitions for topic, partitions in found.items() if topic != EXTRA}
    if not all(isinstance(partitions, dict) for partitions in topics.values()):
        return None
    try:
        return {
            topic: {partition: int(offset) for partition, offset in partitions.items()}
            for topic, partitions in topics.items()
        }
    except (TypeError, ValueError):
        return None


def _first(value: Any) -> Offsets | None:
    """Return the start of the first batch, which our source stores with the offsets."""
    found = _parsed(value)
    return None if found is None else offsets_of(found.get(EXTRA, {}).get("first"))


def _parsed(value: Any) -> dict[str, Any] | None:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return None
    return value if isinstance(value, dict) else None


def observed(progress: Mapping[str, Any]) -> list[dict[str, int]]:
    """Return the counts observed in a batch, one mapping per place. Users may also observe other values."""
    return [
        {name: number or 0 for name, number in _fields(row).items() if isinstance(number, int | None)}
        for row in progress.get("observedMetrics", {}).values()
    ]


def _fields(row: Any) -> Mapping[str, Any]:
    """Return an observed row, which is a mapping in JSON or a `Row` of PySpark."""
    if isinstance(row, Mapping):
        return row
    fields: Mapping[str, Any] = row.asDict()
    return fields
