"""Reset plans as CSV, times and durations."""

from __future__ import annotations

import pytest

from moldau.base.ids import TopicPartition
from moldau.cli.kafka.consumer_groups.reset_plan import csv_line, parse_datetime, parse_duration, parse_plan
from moldau.cli.shared.tool import ToolError


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("1970-01-01T00:00:01.000", 1000),
        ("1970-01-01T00:00:01.5", 1005),
        ("1970-01-01T01:00:00.000+01:00", 0),
        ("1970-01-01T01:00:00.000+01", 0),
        ("1969-12-31T22:30:00.000-0130", 0),
        ("2026-02-28T23:59:59.999Z", 1772323199999),
    ],
)
def test_datetime_is_utc_unless_a_zone_follows(text: str, milliseconds: int) -> None:
    assert parse_datetime(text) == milliseconds


@pytest.mark.parametrize("text", ["2026-01-01", "2026-01-01T00:00:00", "2026-02-30T00:00:00.000", "T", ""])
def test_invalid_datetimes_are_rejected(text: str) -> None:
    with pytest.raises(ToolError):
        parse_datetime(text)


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("P1D", 86_400_000),
        ("PT1H2M3S", 3_723_000),
        ("P1DT1S", 86_401_000),
        ("pt0.25s", 250),
        ("PT-1.5S", -1500),
        ("-PT1M", -60_000),
    ],
)
def test_iso_8601_durations(text: str, milliseconds: int) -> None:
    assert parse_duration(text) == milliseconds


@pytest.mark.parametrize("text", ["", "P", "PT", "1D", "P1Y", "P1H", "P1DT"])
def test_invalid_durations_are_rejected(text: str) -> None:
    with pytest.raises(ToolError):
        parse_duration(text)


def test_plan_round_trips_through_csv() -> None:
    text = csv_line("orders", 0, 5) + csv_line("orders", 1, 7)
    expected = {TopicPartition("orders", 0): 5, TopicPartition("orders", 1): 7}
    assert parse_plan(text, "mine") == {"mine": expected}
    groups = csv_line("a,b", "t", 0, 1) + csv_line('say "hi"', "t" * 25, 3, 2)
    assert groups == f'"a,b",t,0,1\n"say ""hi""","{"t" * 25}",3,2\n'
    assert parse_plan(groups, None) == {
        "a,b": {TopicPartition("t", 0): 1},
        'say "hi"': {TopicPartition("t" * 25, 3): 2},
    }
    assert parse_plan("g,t,0,1\n", "g") == {"g": {TopicPartition("t", 0): 1}}


@pytest.mark.parametrize("line", ["t,0", "t,zero,1", "g,t,0,1,2"])
def test_invalid_line_of_a_plan_is_named(line: str) -> None:
    with pytest.raises(ToolError, match="Line 2 of the reset plan is not topic,partition,offset"):
        parse_plan(f"t,0,1\n{line}\n", "g")
