"""The output of `moldau pipeline list` and `moldau pipeline status`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from rich.table import Table

from moldau.pipelines.runtime.progress_line import describe
from moldau.pipelines.runtime.state import Status

_LEFT = ("NAME", "STATE", "FILE")


def table(statuses: Iterable[Status]) -> Table:
    """Return a table with one row per pipeline."""
    made = Table(box=None, pad_edge=False)
    for heading in ("NAME", "STATE", "ROWS", "ROWS/S", "LAG", "RESTARTS", "FILE"):
        made.add_column(heading, justify="left" if heading in _LEFT else "right")
    for status in statuses:
        made.add_row(*_row(status))
    return made


def _row(status: Status) -> list[str]:
    rows = max((each["rows"] for each in status.queries), default=0)
    rate = sum(each["rows_per_second"] for each in status.queries) if status.state == "running" else 0
    lag = max((each["total_lag"] for each in status.queries), default=0)
    return [
        status.name,
        status.state,
        f"{rows:,}",
        f"{rate:,.0f}",
        f"{lag:,}",
        str(status.restarts),
        status.file,
    ]


def details(status: Status, log: Path) -> Iterator[str]:
    """Yield the lines that describe a pipeline and its queries."""
    yield describe(status)
    if status.state == "dead":
        yield f"  its process has died; moldau pipeline run {status.file} resumes it"
    yield f"  file {status.file}, process {status.supervisor}, driver {status.driver}"
    yield f"  log {log}"
    if status.error is not None:
        yield f"  error {status.error}"
    for query in status.queries:
        batch = f"batch {query['batch']}" if query["batch"] >= 0 else "no batch yet"
        yield (
            f"  query {query['query']}: {batch}, {query['rows']:,} rows, "
            f"{query['batch_ms']} ms, lag {query['total_lag']:,}"
            + (f", state {query['state_rows']:,} rows" if query["state_rows"] else "")
            + (f", watermark {query['watermark']}" if query["watermark"] else "")
        )
    for check_name, count in status.checks.items():
        yield f"  {check_name}: {count:,}"
