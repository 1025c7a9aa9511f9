from __future__ import annotations

from moldau.base.backoff import Backoff


def test_delay_doubles_up_to_the_maximum() -> None:
    backoff = Backoff(0.1, 1.0)

    assert [backoff.seconds(failures) for failures in range(1, 7)] == [0.1, 0.2, 0.4, 0.8, 1.0, 1.0]


def test_initial_delay_above_the_maximum_is_the_maximum() -> None:
    assert Backoff.of_ms(1000, 50).seconds(1) == 0.05


def test_delay_stays_finite_after_thousands_of_failures() -> None:
    assert Backoff(1.0, 60.0).seconds(5000) == 60.0
