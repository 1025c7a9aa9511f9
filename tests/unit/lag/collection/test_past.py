"""The search for the age of a record asks few questions and ends close to it."""

from __future__ import annotations

from bisect import bisect_left

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.lag.collection.past import next_age
from moldau.metrics.end_offsets import EndOffsets

NOW = 10**12
DAY_MS = 24 * 3600 * 1000


def search(times: list[int], offset: int) -> tuple[dict[int, int], int]:
    """Ask a log, whose records have these times, until the search ends; return the points and questions."""
    points: dict[int, int] = {}
    questions = 0
    while (age := next_age(points, offset)) is not None:
        points[age] = bisect_left(times, NOW - age)
        questions += 1
    return points, questions


def age_of(points: dict[int, int], offset: int, end: int) -> int:
    ends = EndOffsets()
    for age in sorted(points, reverse=True):
        ends.add(NOW - age, points[age])
    ends.add(NOW, end)
    found = ends.age_of(offset, NOW)
    assert found is not None and found.exact
    return found.ms


@given(st.lists(st.integers(1, 80 * DAY_MS), min_size=1, max_size=50), st.data())
def test_the_age_is_found_within_a_twentieth(ages: list[int], data: st.DataObject) -> None:
    times = sorted(NOW - age for age in ages)
    offset = data.draw(st.integers(0, len(times) - 1))
    points, questions = search(times, offset)
    assert questions <= 16
    true = NOW - times[offset]
    assert age_of(points, offset, len(times)) == pytest.approx(true, rel=0.06, abs=1100)


def test_a_record_older_than_the_longest_age_is_not_searched_for_ever() -> None:
    points, questions = search([NOW - 1000 * DAY_MS], 0)
    assert questions < 10
    assert all(end == 1 for end in points.values())
