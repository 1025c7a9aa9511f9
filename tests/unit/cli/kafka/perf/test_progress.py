"""Java's date formats."""

from __future__ import annotations

from moldau.cli.kafka.perf.progress import format_date


def test_dates_follow_simple_date_format() -> None:
    shown = format_date("yyyy-MM-dd HH:mm:ss:SSS", 1_700_000_000_007)
    assert shown.startswith("2023-11-1")
    assert shown.endswith(":007")
    assert format_date("'at' yyyy", 1_700_000_000_000) == "at 2023"
