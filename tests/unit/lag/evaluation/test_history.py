"""Histories keep what the rules need in bounded memory; interpolated times stay within the observed ones."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from moldau.lag.evaluation.history import CommitHistory
from moldau.lag.evaluation.rules import Commit

STEPS = st.lists(st.tuples(st.integers(1, 60_000), st.integers(0, 1000)), min_size=1, max_size=400)


@given(STEPS, st.integers(2, 30), st.integers(1, 600_000))
def test_commits_are_the_newest_of_the_window(
    steps: list[tuple[int, int]], capacity: int, window_ms: int
) -> None:
    history, everything, now = CommitHistory(capacity, 0), [], 0
    for index, (elapsed, lag) in enumerate(steps):
        now += elapsed
        everything.append(Commit(index, now, None if lag == 7 else lag))
        history.add(everything[-1], window_ms)
    kept = history.commits()
    assert kept == everything[-len(kept) :]
    assert len(kept) <= capacity
    within = [each for each in everything if each.time_ms >= now - window_ms]
    assert len(kept) == min(max(len(within), 2), capacity, len(everything))
    assert history.last_offset == len(steps) - 1
