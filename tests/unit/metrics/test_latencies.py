"""Quantiles from log-scaled buckets: their error is bounded, and old minutes are forgotten."""

from __future__ import annotations

import random
from itertools import pairwise

from moldau.metrics.latencies import (
    BUCKETS,
    GENERATIONS,
    QUANTILES,
    Latencies,
    bucket_of,
    merged,
    quantiles_ms,
)


def test_buckets_ascend_without_gaps() -> None:
    buckets = [bucket_of(microseconds) for microseconds in range(1 << 16)]
    assert buckets[0] == 0
    assert {after - before for before, after in pairwise(buckets)} == {0, 1}


def test_a_duration_of_hours_is_in_the_last_bucket() -> None:
    assert bucket_of(10**13) == BUCKETS - 1


def test_quantiles_are_exact_to_seven_percent() -> None:
    rng = random.Random(7)
    values = sorted(int(rng.lognormvariate(6, 2)) + 1 for _ in range(20_000))
    latencies = Latencies()
    for value in values:
        latencies.record(value)
    for quantile, found in zip(QUANTILES, quantiles_ms(latencies.recent()), strict=True):
        exact = values[min(len(values) - 1, int(quantile * len(values)))] / 1000
        assert abs(found - exact) <= 0.07 * exact + 0.001, quantile
    assert (latencies.count, latencies.sum_us) == (len(values), sum(values))


def test_quantiles_of_nothing_are_zero() -> None:
    assert quantiles_ms(Latencies().recent()) == [0.0] * len(QUANTILES)


def test_a_single_value_is_every_quantile() -> None:
    latencies = Latencies()
    latencies.record(12)
    assert quantiles_ms(latencies.recent()) == [0.012] * len(QUANTILES)


def test_old_generations_are_forgotten_but_counted() -> None:
    latencies = Latencies()
    latencies.record(1_000_000)
    for _ in range(GENERATIONS):
        latencies.rotate()
        assert quantiles_ms(latencies.recent(), (0.99,))[0] > 900
    latencies.rotate()
    assert quantiles_ms(latencies.recent(), (0.99,)) == [0.0]
    assert (latencies.count, latencies.sum_us) == (1, 1_000_000)


def test_merged_counts_have_the_quantiles_of_all_values() -> None:
    fast, slow = Latencies(), Latencies()
    for _ in range(98):
        fast.record(10)
    for _ in range(2):
        slow.record(1_000_000)
    median, high = quantiles_ms(merged((fast.recent(), slow.recent())), (0.5, 0.99))
    assert median == 0.01
    assert 900 < high < 1100
