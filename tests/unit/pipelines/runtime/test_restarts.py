"""Pauses between tries."""

from __future__ import annotations

from moldau.pipelines.runtime.restarts import Policy, Restarts


def test_pauses_double_up_to_the_longest_and_tries_end() -> None:
    restarts = Restarts(Policy(first_pause_s=1, longest_pause_s=5, tries=6))
    restarts.started(0.0)
    assert [restarts.failed(1.0) for _ in range(6)] == [1, 2, 4, 5, 5, None]
    assert restarts.count == 5


def test_a_good_while_of_work_begins_the_count_anew() -> None:
    restarts = Restarts(Policy(first_pause_s=1, tries=3, healthy_s=60))
    restarts.started(0.0)
    assert restarts.failed(10.0) == 1
    restarts.started(11.0)
    assert restarts.failed(12.0) == 2
    restarts.started(14.0)
    assert restarts.failed(74.0) == 1
    assert restarts.count == 3
