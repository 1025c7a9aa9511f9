"""A repeated failure is logged at once and then at growing intervals."""

from __future__ import annotations

from itertools import pairwise

from moldau.base.log_throttle import Seldom


def test_repeated_message_is_logged_at_growing_intervals() -> None:
    seldom = Seldom()
    told = [second for second in range(4 * 3600) if seldom.is_due(second, "gone")]
    assert told[:4] == [0, 10, 30, 70]
    assert len(told) < 35
    assert max(later - earlier for earlier, later in pairwise(told)) == 600


def test_new_reason_is_logged_at_once() -> None:
    seldom = Seldom()
    assert seldom.is_due(0, "gone")
    assert not seldom.is_due(1, "gone")
    assert seldom.is_due(2, "refused")
    assert not seldom.is_due(3, "refused")


def test_throttle_restarts_after_the_failure_is_over() -> None:
    seldom = Seldom()
    assert seldom.is_due(0, "gone")
    seldom.over()
    assert seldom.is_due(1, "gone")
