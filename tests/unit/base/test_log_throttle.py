"""A repeated failure is logged at once and then at growing intervals."""

from __future__ import annotations

from itertools import pairwise

from moldau.base.log_throttle import LogThrottle


def test_repeated_message_is_logged_at_growing_intervals() -> None:
    throttle = LogThrottle()
    logged = [second for second in range(4 * 3600) if throttle.is_due(second, "gone")]
    assert logged[:4] == [0, 10, 30, 70]
    assert len(logged) < 35
    assert max(later - earlier for earlier, later in pairwise(logged)) == 600


def test_new_reason_is_logged_at_once() -> None:
    throttle = LogThrottle()
    assert throttle.is_due(0, "gone")
    assert not throttle.is_due(1, "gone")
    assert throttle.is_due(2, "refused")
    assert not throttle.is_due(3, "refused")


def test_throttle_restarts_after_the_failure_is_over() -> None:
    throttle = LogThrottle()
    assert throttle.is_due(0, "gone")
    throttle.reset()
    assert throttle.is_due(1, "gone")
