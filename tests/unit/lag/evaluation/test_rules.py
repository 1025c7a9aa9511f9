"""Burrow's rules, each on the smallest history that decides it."""

from __future__ import annotations

import pytest

from moldau.lag.evaluation.rules import Commit, Status, partition_status


def commits(*values: tuple[int, int | None], every_ms: int = 10_000) -> list[Commit]:
    """Commits at equal distances: pairs of offset and lag."""
    return [Commit(offset, index * every_ms, lag) for index, (offset, lag) in enumerate(values)]


def judge(
    history: list[Commit],
    *,
    lag: int | None = None,
    after_ms: int = 1000,
    recent_end: int | None = 10**9,
    allowed: int = 0,
) -> Status:
    """Judge `after_ms` after the last commit; the consumer has always had lag."""
    current = (history[-1].lag or 0) if lag is None else lag
    return partition_status(
        history,
        lag=current,
        recent_end_offset=recent_end,
        waiting_ms=after_ms,
        pace_ms=history[-1].time_ms - history[0].time_ms if history else 0,
        allowed_lag=allowed,
    )


def test_no_commits_are_ok() -> None:
    assert judge([], lag=100) is Status.OK


def test_no_current_lag_is_ok_whatever_happened_before() -> None:
    assert judge(commits((900, 10), (100, 900), (100, 0)), lag=0, after_ms=10**6) is Status.OK


@pytest.mark.parametrize(("after_ms", "status"), [(30_000, Status.WARN), (30_001, Status.STOP)])
def test_stop_after_the_time_span_of_the_commits(after_ms: int, status: Status) -> None:
    assert judge(commits((10, 5), (20, 6), (30, 7), (40, 8)), after_ms=after_ms) is status


def test_not_stopped_if_the_consumer_had_no_lag_recently() -> None:
    history = commits((10, 5), (20, 5), (30, 0))
    assert judge(history, lag=7, after_ms=10**6, recent_end=30) is Status.OK
    assert judge(history, lag=7, after_ms=10**6, recent_end=31) is Status.STOP
    assert judge(history, lag=7, after_ms=10**6, recent_end=None) is Status.STOP


def test_one_commit_is_stopped_at_once() -> None:
    assert judge(commits((10, 5)), after_ms=1) is Status.STOP
    assert judge(commits((10, 5)), after_ms=0) is Status.STALL


def test_rewind_until_the_offset_is_reached_again() -> None:
    assert judge(commits((10, 5), (50, 5), (20, 40), (40, 30))) is Status.REWIND
    assert judge(commits((10, 5), (50, 5), (20, 40), (50, 30))) is Status.OK


def test_rewind_counts_although_there_was_no_lag_before() -> None:
    assert judge(commits((50, 0), (10, 40))) is Status.REWIND


def test_stop_takes_precedence_over_rewind() -> None:
    assert judge(commits((50, 0), (10, 40)), after_ms=10**6) is Status.STOP


def test_zero_lag_at_any_commit_is_ok() -> None:
    assert judge(commits((10, 5), (20, 0), (30, 9), (40, 12))) is Status.OK


def test_stall_if_all_commits_have_one_offset() -> None:
    assert judge(commits((10, 5), (10, 8), (10, 9))) is Status.STALL
    assert judge(commits((10, 5), (10, 8), (11, 9))) is Status.WARN


@pytest.mark.parametrize(
    ("lags", "status"),
    [
        ([5, 6, 7], Status.WARN),
        ([5, 5, 5], Status.WARN),
        ([5, 9, 8], Status.OK),
        ([9, 8, 20], Status.OK),
        ([5, None, 6], Status.WARN),
        ([5, None, 4], Status.OK),
    ],
)
def test_warn_if_the_lag_never_decreases(lags: list[int | None], status: Status) -> None:
    history = commits(*((10 * index, lag) for index, lag in enumerate(lags)))
    assert judge(history, lag=7) is status


def test_allowed_lag_replaces_zero() -> None:
    history = commits((10, 5), (20, 6), (30, 7))
    assert judge(history, allowed=6) is Status.OK  # 5 and 6 count as no lag
    assert judge(history, allowed=7) is Status.OK
    assert judge(history, allowed=4) is Status.WARN
