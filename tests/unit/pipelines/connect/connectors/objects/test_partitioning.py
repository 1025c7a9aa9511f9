"""Folders of records by time: patterns, time zones and buckets."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from moldau.pipelines.connect.connectors.objects.partitioning import TimePartitioner, time_text, zone_of
from moldau.pipelines.connect.data.errors import ConfigError
from moldau.pipelines.connect.data.records import SinkRecord

MOMENT = datetime(2026, 3, 4, 5, 6, 7, 89_000, tzinfo=UTC)


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("'year'=YYYY/'month'=MM/'day'=dd/'hour'=HH", "year=2026/month=03/day=04/hour=05"),
        ("yy-M-d H:m:s.SSS", "26-3-4 5:6:7.089"),
        ("EEE d MMMM, D", "Wed 4 March, 63"),
        ("''yyyy'o''clock'", "'2026o'clock"),
    ],
)
def test_times_are_formatted_like_joda(pattern: str, expected: str) -> None:
    assert time_text(pattern, MOMENT) == expected


def test_unknown_letters_and_open_quotes_are_refused() -> None:
    for pattern in ("QQ", "'year"):
        with pytest.raises(ConfigError):
            time_text(pattern, MOMENT)


def test_buckets_begin_at_local_midnight_also_before_1970() -> None:
    partitioner = TimePartitioner("YYYY-MM-dd HH", 86_400_000, zone_of("Asia/Kolkata"), "Record", "")

    def folder(moment: datetime) -> str:
        record = SinkRecord(topic="t", partition=0, offset=0, timestamp=int(moment.timestamp() * 1000))
        return partitioner.folder(record)

    assert folder(datetime(2026, 3, 4, 18, 29, tzinfo=UTC)) == "2026-03-04 00"
    assert folder(datetime(2026, 3, 4, 18, 30, tzinfo=UTC)) == "2026-03-05 00"
    assert folder(datetime(1969, 12, 31, 12, 0, tzinfo=UTC)) == "1969-12-31 00"
