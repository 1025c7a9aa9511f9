"""Windows check their durations."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from moldau.pipelines.streams import (
    JoinWindows,
    SessionWindows,
    SlidingWindows,
    TimeWindows,
)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: TimeWindows.of_size_with_no_grace(0), "must be positive"),
        (lambda: TimeWindows.of_size_with_no_grace(10).advance_by(11), "advance by 1 to 10 ms"),
        (lambda: TimeWindows.of_size_and_grace(10, -1), "grace period must not be negative"),
        (lambda: SlidingWindows.of_time_difference_with_no_grace(-1), "must not be negative"),
        (lambda: SessionWindows.of_inactivity_gap_with_no_grace(timedelta(seconds=-1)), "not be negative"),
        (lambda: JoinWindows.of_time_difference_with_no_grace(5).before(-10), "end before its start"),
    ],
)
def test_invalid_windows_are_rejected(make: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_durations_are_milliseconds_or_timedeltas() -> None:
    assert TimeWindows.of_size_with_no_grace(timedelta(minutes=1)).size_ms == 60_000
    with pytest.raises(TypeError, match="milliseconds or a timedelta"):
        TimeWindows.of_size_with_no_grace("1 minute")  # type: ignore[arg-type]
