"""The interval between two target assignments of a group."""

from __future__ import annotations

import pytest

from moldau.groups.streams.group import StreamsGroup


@pytest.mark.parametrize(
    ("assigned_ms", "now_ms", "interval_ms", "may"),
    [
        (0, 500, 1_000, True),
        (10_000, 10_500, 1_000, False),
        (10_000, 11_000, 1_000, True),
        (10_000, 10_000, 0, True),
        # The clock of the coordinator that computed the last target was ahead.
        (7_200_000, 10_000, 1_000, True),
    ],
)
def test_assignments_keep_their_interval(assigned_ms: int, now_ms: int, interval_ms: int, may: bool) -> None:
    group = StreamsGroup("g")
    group.assignment_timestamp_ms = assigned_ms
    assert group.may_assign(now_ms, interval_ms) is may
