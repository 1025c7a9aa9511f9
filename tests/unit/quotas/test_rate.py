"""Sampled windows, compared with a model that keeps every value."""

from __future__ import annotations

import random

import pytest

from moldau.quotas.rate import QuotaWindows, Rate

WINDOWS = QuotaWindows(11, 1000)


class Model:
    """Every value with the beginning of its window; a window begins with the first value after the last."""

    def __init__(self, windows: QuotaWindows) -> None:
        self._windows = windows
        self._values: list[tuple[int, int, float]] = []

    def record(self, value: float, now_ms: int) -> None:
        start = self._values[-1][0] if self._values else now_ms
        if now_ms - start >= self._windows.size_ms:
            start = now_ms
        self._values.append((start, now_ms, value))

    def total(self, now_ms: int) -> float:
        expiry_ms = self._windows.number * self._windows.size_ms
        last = {start: at for start, at, _ in self._values}
        return sum(value for start, _, value in self._values if now_ms - last[start] < expiry_ms)


@pytest.mark.parametrize("seed", range(20))
def test_total_equals_the_sum_of_the_windows_that_overlap_the_measured_time(seed: int) -> None:
    rng = random.Random(seed)
    windows = QuotaWindows(rng.randrange(1, 12), rng.choice([100, 1000]))
    rate, model = Rate(windows), Model(windows)
    now = 1_000_000
    for _ in range(500):
        now += rng.choice([0, 1, 50, 200, 999, 1000, 3500])
        value = rng.randrange(1, 1000)
        rate.record(value, now)
        model.record(value, now)
        assert rate.total(now) == model.total(now)


def test_rate_assumes_all_but_one_window_before_the_first_value() -> None:
    rate = Rate(WINDOWS)
    rate.record(10_000, 0)
    assert rate.measure(0) == 1000
    assert rate.measure(500) == pytest.approx(10_000 / 10.5)


def test_old_values_leave_the_rate() -> None:
    rate = Rate(WINDOWS)
    rate.record(10_000, 0)
    assert rate.measure(10_999) > 0
    assert rate.measure(11_000) == 0


def test_taking_back_a_value_restores_the_rate() -> None:
    rate = Rate(WINDOWS)
    rate.record(500, 0)
    rate.record(9000, 100)
    rate.record(-9000, 100)
    assert rate.total(100) == 500


def test_rate_within_the_limit_is_not_throttled() -> None:
    rate = Rate(WINDOWS)
    rate.record(10_000, 0)
    assert rate.throttle_ms(1000, 0) == 0


def test_throttle_time_brings_the_rate_to_the_limit() -> None:
    rate = Rate(WINDOWS)
    rate.record(12_000, 0)
    throttle_ms = rate.throttle_ms(1000, 0)
    assert throttle_ms == 2000
    assert 12_000 / (10 + throttle_ms / 1000) == 1000
