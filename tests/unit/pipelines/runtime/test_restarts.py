"""Delays between restarts."""

from __future__ import annotations

from moldau.base.backoff import Backoff
from moldau.pipelines.runtime.restarts import Policy, Restarts


def test_delay_doubles_up_to_the_maximum_and_tries_are_limited() -> None:
    restarts = Restarts(Policy(Backoff(1, 5), tries=6))
    restarts.started(0.0)
    assert [restarts.failed(1.0) for _ in range(6)] == [1, 2, 4, 5, 5, None]
    assert restarts.count == 5


def test_failure_after_a_long_run_counts_as_the_first() -> None:
    restarts = Restarts(Policy(Backoff(1, 60), tries=3, healthy_s=60))
    restarts.started(0.0)
    assert restarts.failed(10.0) == 1
    restarts.started(11.0)
    assert restarts.failed(12.0) == 2
    restarts.started(14.0)
    assert restarts.failed(74.0) == 1
    assert restarts.count == 3
