"""A repeated failure is logged at once and then at growing intervals."""

from __future__ import annotations

from itertools import pairwise

from moldau.base.log_throttle import LogThrottle, Repeats


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


def test_different_lines_are_remembered_up_to_a_bound() -> None:
    repeats = Repeats(lambda: 0.0, most=2)
    assert [repeats.left_out(each) for each in ("a", "b", "a", "c")] == [0, 0, None, 0]
    assert (repeats.left_out("b"), repeats.left_out("a")) == (None, 0)


def test_a_client_cannot_choose_how_often_it_is_logged() -> None:
    clock = iter((0.0, 0.1, 0.2, 0.3, 1.1))
    repeats = Repeats(lambda: next(clock), interval_s=1.0)
    reasons = [repeats.refusal("10.0.0.1", f"a frame of {size} bytes") for size in (1, 22)]
    assert reasons == ["a frame of 1 bytes", None]
    assert repeats.refusal("10.0.0.1", "a request of API 5") == "a request of API 5"
    assert repeats.refusal("10.0.0.2", "a frame of 3 bytes") == "a frame of 3 bytes"
    assert repeats.refusal("10.0.0.1", "a frame of 4 bytes") == (
        "a frame of 4 bytes (1 more since the last such line)"
    )
