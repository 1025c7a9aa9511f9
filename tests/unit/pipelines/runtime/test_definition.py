"""Parts of a definition."""

from __future__ import annotations

from pathlib import Path

import pytest

from moldau.pipelines.runtime.definition import AtMost, Definition, Sink, Source


@pytest.mark.parametrize(
    ("text", "expected"),
    [("20", AtMost(20)), ("5%", AtMost(5, True)), ("0.5 %", AtMost(0.5, True)), ("0", AtMost(0))],
)
def test_at_most_is_a_number_of_rows_or_a_percentage(text: str, expected: AtMost) -> None:
    assert AtMost.parse(text) == expected


@pytest.mark.parametrize("text", ["many", "-1", "1.5", "101%", "%", "5 rows"])
def test_invalid_at_most(text: str) -> None:
    assert AtMost.parse(text) is None


def test_what_a_pipeline_writes_is_in_its_status() -> None:
    sinks = (Sink(topic="clean", format="json"), Sink(format="parquet", path="/data"), Sink(format="console"))
    definition = Definition("orders", Path("orders.yaml"), Source(("raw",)), sinks, dead_letter="letters")
    assert definition.written == [
        {"topic": "clean", "role": "sink"},
        {"format": "parquet", "path": "/data"},
        {"format": "console", "path": ""},
        {"topic": "letters", "role": "dead letters"},
    ]
