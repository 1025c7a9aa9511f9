"""Means and rates over a window."""

from __future__ import annotations

import pytest

from moldau.server.metrics.loop import MeanSampler


def test_a_mean_covers_the_last_minute() -> None:
    """As Kafka's `Avg`: what was slow an hour ago does not count."""
    latency = MeanSampler()
    assert latency.mean(0.0, 0) == 0.0
    assert latency.mean(6.0, 3) == 2.0
    total, count = 1000.0, 10
    for _ in range(13):
        latency.sample(total, count)
        total, count = total + 0.2, count + 2
    assert latency.mean(total, count) == pytest.approx(0.1)


def test_a_mean_without_anything_new_is_zero() -> None:
    latency = MeanSampler()
    for _ in range(13):
        latency.sample(5.0, 5)
    assert latency.mean(5.0, 5) == 0.0
    assert latency.mean(5.5, 6) == 0.5
