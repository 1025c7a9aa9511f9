"""Clients held at a limit."""

from __future__ import annotations

import itertools

import pytest

from moldau.quotas.pacer import Pacer
from moldau.quotas.rate import QuotaWindows

LIMIT = 100_000


def pacer() -> Pacer:
    return Pacer(QuotaWindows(11, 1000))


def produced(request_bytes: int, seconds: int) -> list[int]:
    """Return when a producer that always has data sends its requests, a millisecond each."""
    used, now, times = pacer(), 0, []
    while now < seconds * 1000:
        times.append(now)
        now += 1 + used.record(request_bytes, LIMIT, now)
    return times


def fetched(response_bytes: int, seconds: int) -> list[int]:
    """Return when a consumer that always has data receives its responses."""
    used, now, times = pacer(), 0, []
    while now < seconds * 1000:
        throttle_ms = used.record_if_within(response_bytes, LIMIT, now)
        if not throttle_ms:
            times.append(now)
        now += 1 + throttle_ms
    return times


@pytest.mark.parametrize("send", [produced, fetched])
@pytest.mark.parametrize("size", [1000, 20_000, 60_000, 100_000])
def test_client_that_always_has_data_gets_its_limit_over_ten_seconds(send: object, size: int) -> None:
    times = send(size, 60)  # type: ignore[operator]
    starts = itertools.chain([0], range(11_000, 50_000, 500))
    for start in starts:
        used = size * sum(start <= at < start + 10_000 for at in times)
        assert 0.9 < used / (LIMIT * 10) < 1.1, start


def test_idle_client_may_use_ten_windows_at_once() -> None:
    used = pacer()
    assert [used.record(LIMIT / 10, LIMIT, 0) for _ in range(99)] == [0] * 99
    assert used.record(LIMIT / 10, LIMIT, 0) == 10_000


def test_client_below_its_limit_on_average_is_never_throttled() -> None:
    used = pacer()
    assert [used.record(4.5 * LIMIT, LIMIT, now) for now in range(0, 60_000, 6000)] == [0] * 10


def test_throttled_client_has_used_its_limit_when_it_may_continue() -> None:
    used = pacer()
    throttle_ms = used.record(12 * LIMIT, LIMIT, 0)
    assert throttle_ms == 12_000
    assert used.throttle_ms(LIMIT, 12_000) == 0


def test_client_that_uses_less_than_its_limit_is_free_again() -> None:
    used = pacer()
    used.record(12 * LIMIT, LIMIT, 0)
    assert used.burst(LIMIT, 12_000) == LIMIT
    assert used.burst(LIMIT, 13_000) == 10 * LIMIT
    assert used.record(9 * LIMIT, LIMIT, 23_000) == 0


def test_fetch_that_is_throttled_is_not_counted() -> None:
    used = pacer()
    assert used.record_if_within(10 * LIMIT, LIMIT, 0) == 0
    assert used.record_if_within(LIMIT, LIMIT, 0) == 10_000
    assert used.record_if_within(LIMIT, LIMIT, 0) == 10_000
    assert used.record_if_within(LIMIT, LIMIT, 10_000) == 0


def test_batch_larger_than_all_windows_is_fetched() -> None:
    used = pacer()
    assert used.record_if_within(50 * LIMIT, LIMIT, 0) == 0
    assert used.record_if_within(1, LIMIT, 0) == 50_000


def test_higher_limit_ends_the_throttling_sooner() -> None:
    used = pacer()
    used.record(20 * LIMIT, LIMIT, 0)
    assert used.throttle_ms(10 * LIMIT, 0) == 2000
