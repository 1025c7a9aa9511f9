"""Progress as Spark gives it, read: rows by offsets, lag, counts, and the line that tells it."""

from __future__ import annotations

import io
from typing import Any

from moldau.pipelines.runtime.progress import Summary, lag, watermark_seconds
from moldau.pipelines.runtime.progress_line import ProgressLine, describe
from moldau.pipelines.runtime.state import Status


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


def test_batches_add_up_and_are_counted_once() -> None:
    summary = Summary("q")
    assert summary.take([FIRST])
    assert (summary.rows, summary.batches, summary.rows_per_second) == (6, 1, 12.0)
    assert summary.lag == {"t": {"0": 20, "1": 0}}
    assert (summary.state_rows, summary.watermark) == (7, "2026-01-01T00:00:00.000Z")
    assert summary.take([FIRST, SECOND])
    assert not summary.take([FIRST, SECOND])
    assert (summary.rows, summary.batches, summary.total_lag) == (27, 2, 1)
    assert summary.counts == {"unreadable": 3, "check a": 4}


def test_a_source_without_offsets_of_topics_is_counted_by_spark() -> None:
    files = {"startOffset": None, "endOffset": {"logOffset": 3}, "latestOffset": None, "numInputRows": 12}
    rate = {"startOffset": 0, "endOffset": 5, "latestOffset": 5, "numInputRows": 5}
    summary = Summary("q")
    summary.take([{"batchId": 0, "sources": [files, rate]}])
    assert summary.rows == 17
    assert summary.lag == {}


def test_a_partition_that_two_sources_read_lags_once() -> None:
    source = FIRST["sources"][0]
    assert lag([source, source]) == {"t": {"0": 20, "1": 0}}


def test_a_watermark_as_a_number() -> None:
    assert watermark_seconds("2026-01-01T00:00:00.500Z") == 1767225600.5


def running(name: str = "orders", state: str = "running") -> Status:
    query = {"rows_per_second": 1234.4, "rows": 5000, "total_lag": 3, "batch_ms": 133}
    return Status(name, state=state, queries=[query], dead_letters=2, restarts=1, error="broken")


def test_a_status_in_one_line() -> None:
    text = "orders running: 1,234 rows/s, 5,000 rows, lag 3, batch 133 ms, 2 dead letters, 1 restart"
    assert describe(running()) == text
    assert describe(running(state="waiting")).endswith("1 restart, broken")


def test_without_a_terminal_lines_are_rare_but_states_are_told_at_once() -> None:
    out = io.StringIO()
    line = ProgressLine(out)
    line.begin([running()])
    for second in range(12):
        line.show([running(), running("clicks", "waiting" if second == 3 else "running")], float(second))
    told = [text.split(":")[0] for text in out.getvalue().splitlines()]
    both = ["orders running", "clicks running"]
    assert told == [*both, "clicks waiting", "clicks running", *both]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_on_a_terminal_one_line_is_written_over() -> None:
    out = Terminal()
    line = ProgressLine(out)
    line.begin([running()])
    line.show([running()], 0.0)
    line.show([running()], 1.0)
    line.end([running(), running("clicks", "failed")])
    line.close()
    starting, shown = out.getvalue().split("\r\x1b[K")[1:]
    assert starting == "Starting Spark for orders ..."
    assert shown.startswith("orders running")
    assert shown.splitlines()[1:] == [describe(running("clicks", "failed"))]
    assert shown.endswith("broken\n")
    assert out.getvalue().endswith("\n")
