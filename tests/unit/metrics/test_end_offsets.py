"""Histories keep what the rules need in bounded memory; interpolated times stay within the observed ones."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from moldau.metrics.end_offsets import MAX_END_OFFSETS, Age, EndOffsets

STEPS = st.lists(st.tuples(st.integers(1, 60_000), st.integers(0, 1000)), min_size=1, max_size=400)


def history_of(*points: tuple[int, int]) -> EndOffsets:
    ends = EndOffsets()
    for time_ms, offset in points:
        ends.add(time_ms, offset)
    return ends


@given(STEPS)
def test_end_offsets_are_bounded_and_keep_the_first_and_the_last(steps: list[tuple[int, int]]) -> None:
    ends, now, end, points = EndOffsets(), 0, 0, []
    for elapsed, count in steps:
        now, end = now + elapsed, end + count
        points.append((now, end))
        ends.add(now, end)
    assert len(ends) <= MAX_END_OFFSETS
    assert ends.last == end
    assert ends.at(0) == ends.at(points[0][0]) == points[0][1]
    assert ends.at(now) == end


@given(STEPS, st.data())
def test_the_age_of_a_record_is_between_the_observations_around_it(
    steps: list[tuple[int, int]], data: st.DataObject
) -> None:
    """As long as no point was removed: the append happened between two successive observations."""
    ends, now, end, points = EndOffsets(), 0, 0, []
    for elapsed, count in steps[: MAX_END_OFFSETS // 2]:
        now, end = now + elapsed, end + count
        points.append((now, end))
        ends.add(now, end)
    offset = data.draw(st.integers(0, end + 2))
    age = ends.age_of(offset, now)
    assert age is not None
    if offset >= end:
        assert age == Age(0, True)
    elif offset < points[0][1]:
        assert age == Age(now - points[0][0], False)
    else:
        after = next(index for index, (_, seen) in enumerate(points) if seen > offset)
        assert age.exact
        assert points[after - 1][0] <= now - age.ms <= points[after][0]


@given(STEPS)
def test_older_records_have_a_greater_age(steps: list[tuple[int, int]]) -> None:
    ends, now, end = EndOffsets(), 0, 0
    for elapsed, count in steps:
        now, end = now + elapsed, end + count
        ends.add(now, end)
    found = [ends.age_of(offset, now) for offset in range(0, end + 1, max(end // 50, 1))]
    ages = [age.ms for age in found if age is not None]
    assert ages == sorted(ages, reverse=True)
    assert all(0 <= age <= now for age in ages)


def test_a_constant_rate_is_interpolated_exactly() -> None:
    ends = history_of((0, 0), (10_000, 100), (20_000, 200))
    assert ends.age_of(99, 20_000) == Age(10_000, True)
    assert ends.age_of(149, 20_000) == Age(5_000, True)
    assert ends.age_of(199, 25_000) == Age(5_000, True)


def test_a_record_after_a_pause_is_as_old_as_the_end_of_the_pause() -> None:
    ends = history_of(*((time_ms, 100) for time_ms in range(0, 600_000, 10_000)), (600_000, 101))
    assert ends.age_of(100, 601_000) == Age(1_000, True)
    assert len(ends) == 3


def test_a_truncated_log_starts_a_new_history() -> None:
    ends = history_of((0, 0), (10_000, 100), (20_000, 40))
    assert len(ends) == 1
    assert ends.age_of(20, 25_000) == Age(5_000, False)


def test_a_clock_that_is_set_back_keeps_the_order() -> None:
    ends = history_of((10_000, 10), (5_000, 20), (12_000, 30))
    assert ends.age_of(25, 12_000) == Age(800, True)
    assert ends.at(11_000) == 20


def test_rates_are_measured_over_the_window() -> None:
    ends = history_of((0, 0), (10_000, 1000), (20_000, 1100), (30_000, 1200))
    assert ends.rate(10_000) == ends.rate(15_000) == ends.rate(20_000) == 10.0
    assert ends.rate(0) == 40.0
    assert EndOffsets().rate(0) is None


def test_the_history_covers_hours_with_a_distance_that_grows_with_the_age() -> None:
    ends = history_of(*((second * 1000, second * 10) for second in range(0, 36_000, 10)))
    now = 36_000_000 - 10_000
    assert len(ends) <= MAX_END_OFFSETS
    for second in range(1, 35_990, 997):
        # The last record of a second was appended at its end.
        assert ends.age_of(second * 10 - 1, now) == Age(now - second * 1000, True)
