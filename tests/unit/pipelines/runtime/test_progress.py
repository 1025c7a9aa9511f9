"""The progress of a query: rows by offsets, lag, counts, watermark."""

from __future__ import annotations

from typing import Any

from moldau.pipelines.runtime.progress import Summary, lag, watermark_seconds


def batch(number: int, start: Any, end: Any, latest: Any, **more: Any) -> dict[str, Any]:
    source = {"startOffset": start, "endOffset": end, "latestOffset": latest, "numInputRows": 999}
    return {"batchId": number, "sources": [source], "durationMs": {"triggerExecution": 500}, **more}


FIRST = batch(
    0,
    None,
    {"t": {"0": 10, "1": 5}, "$moldau": {"first": {"t": {"0": 4, "1": 5}}}},
    {"t": {"0": 30, "1": 5}},
    observedMetrics={"moldau source": {"unreadable": 2, "check a": None, "rows": 9, "first": "not JSON"}},
    eventTime={"watermark": "2026-01-01T00:00:00.000Z"},
    stateOperators=[{"numRowsTotal": 3}, {"numRowsTotal": 4}],
)
SECOND = batch(
    1,
    {"t": {"0": 10, "1": 5}},
    '{"t": {"0": 30, "1": 6}}',
    '{"t": {"0": 30, "1": 7}}',
    observedMetrics={"moldau source": {"unreadable": 1, "check a": 4}},
)


def test_each_batch_is_counted_once() -> None:
    summary = Summary("q")
    assert summary.add([FIRST])
    assert (summary.rows, summary.batches, summary.rows_per_second) == (6, 1, 12.0)
    assert summary.lag == {"t": {"0": 20, "1": 0}}
    assert (summary.state_rows, summary.watermark) == (7, "2026-01-01T00:00:00.000Z")
    assert summary.add([FIRST, SECOND])
    assert not summary.add([FIRST, SECOND])
    assert (summary.rows, summary.batches, summary.total_lag) == (27, 2, 1)
    assert summary.counts == {"unreadable": 3, "check a": 4}


def test_rows_of_other_sources_are_counted_by_spark() -> None:
    files = {"startOffset": None, "endOffset": {"logOffset": 3}, "latestOffset": None, "numInputRows": 12}
    rate = {"startOffset": 0, "endOffset": 5, "latestOffset": 5, "numInputRows": 5}
    summary = Summary("q")
    summary.add([{"batchId": 0, "sources": [files, rate]}])
    assert summary.rows == 17
    assert summary.lag == {}


def test_lag_of_a_partition_read_twice_counts_once() -> None:
    source = FIRST["sources"][0]
    assert lag([source, source]) == {"t": {"0": 20, "1": 0}}


def test_watermark_in_seconds() -> None:
    assert watermark_seconds("2026-01-01T00:00:00.500Z") == 1767225600.5
