"""Clients held at a limit."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from moldau.quotas.pacer import Pacer
from moldau.quotas.rate import QuotaWindows, Rate

LIMIT = 100_000


def pacer() -> Pacer:
    return Pacer(QuotaWindows(11, 1000))


def produced(used: Pacer, request_bytes: int, pause_ms: Callable[[int], int] = lambda now: 0) -> list[int]:
    """Return when a producer sends its requests in a minute, a millisecond each, and pauses in between."""
    now, times = 0, []
    while now < 60_000:
        times.append(now)
        now += 1 + used.record(request_bytes, LIMIT, now)
        now += pause_ms(now)
    return times


def fetched(used: Pacer, response_bytes: int) -> list[int]:
    """Return when a consumer that always has data receives its responses in a minute."""
    now, times = 0, []
    while now < 60_000:
        throttle_ms = used.record_if_within(response_bytes, LIMIT, now)
        if not throttle_ms:
            times.append(now)
        now += 1 + throttle_ms
    return times


def share(times: list[int], size: int, start: int) -> float:
    """Return which part of its limit the client got in ten seconds."""
    return size * sum(start <= at < start + 10_000 for at in times) / (LIMIT * 10)


def longest_gap(times: list[int]) -> int:
    return max(after - before for before, after in itertools.pairwise(times))


@pytest.mark.parametrize("send", [produced, fetched])
@pytest.mark.parametrize(("size", "most"), [(1000, 1.25), (20_000, 1.27), (60_000, 1.33), (100_000, 1.31)])
def test_client_that_always_has_data_gets_its_limit(
    send: Callable[[Pacer, int], list[int]], size: int, most: float
) -> None:
    """Apache Kafka: 1.11, 1.24, 1.38 and 1.4 times the limit in the first ten seconds, then 0.1 to 1.3."""
    times = send(pacer(), size)
    assert 1 <= share(times, size, 0) <= most
    for start in range(10_000, 50_000, 250):
        assert 0.95 < share(times, size, start) < 1.05, start
    # A request of a tenth of a second waits half a second at most, not for the ten seconds of the burst.
    assert longest_gap(times) <= 5 * size / LIMIT * 1000 + 2


@pytest.mark.parametrize("pause_factor", [2, 1.1, 1])
@pytest.mark.parametrize("size", [1000, 20_000])
def test_client_that_begins_to_use_more_gets_its_limit(size: int, pause_factor: float) -> None:
    """It uses a part of its limit for twenty seconds, then it always has data."""

    def pause_ms(now: int) -> int:
        return int(size / LIMIT * 1000 * pause_factor) if now < 20_000 else 0

    times = produced(pacer(), size, pause_ms)
    assert max(share(times, size, start) for start in range(0, 50_000, 250)) <= 1.25
    for start in range(30_000, 50_000, 250):
        assert 0.95 < share(times, size, start) < 1.05, start
    assert longest_gap(times) <= 1000 + 1


@pytest.mark.parametrize("size", [1000, 20_000])
def test_pauses_allow_no_more_than_a_burst(size: int) -> None:
    times = produced(pacer(), size, lambda now: 5000 if now % 20_000 < 60 else 0)
    assert max(share(times, size, start) for start in range(0, 50_000, 250)) <= 1.27


def test_idle_client_may_use_ten_windows_at_once() -> None:
    used = pacer()
    assert [used.record(LIMIT / 10, LIMIT, 0) for _ in range(100)] == [0] * 100
    assert used.record(LIMIT / 10, LIMIT, 0) == 100
    assert used.record(LIMIT / 10, LIMIT, 100) == 500


def test_request_that_exceeds_the_limit_is_throttled_as_by_kafka() -> None:
    used, kafkas = pacer(), Rate(QuotaWindows(11, 1000))
    used.record(4 * LIMIT, LIMIT, 0)
    kafkas.record(4 * LIMIT, 0)
    kafkas.record(9 * LIMIT, 2500)
    assert used.record(9 * LIMIT, LIMIT, 2500) == kafkas.throttle_ms(LIMIT, 2500) > 0


def test_client_below_its_limit_on_average_is_never_throttled() -> None:
    used = pacer()
    assert [used.record(4.5 * LIMIT, LIMIT, now) for now in range(0, 60_000, 6000)] == [0] * 10


def test_client_that_uses_less_than_its_limit_is_free_again() -> None:
    used = pacer()
    used.record(12 * LIMIT, LIMIT, 0)
    assert used.burst(LIMIT, 2000) == LIMIT / 5
    assert used.burst(LIMIT, 2999) == LIMIT / 5
    assert used.burst(LIMIT, 3000) == 10 * LIMIT
    assert used.record(9 * LIMIT, LIMIT, 23_000) == 0


def test_fetch_that_is_throttled_is_not_counted() -> None:
    used = pacer()
    assert used.record_if_within(10 * LIMIT, LIMIT, 0) == 0
    assert used.record_if_within(LIMIT, LIMIT, 0) == 1000
    assert used.record_if_within(LIMIT, LIMIT, 0) == 1000
    assert used.record_if_within(LIMIT, LIMIT, 1000) == 0


def test_batch_larger_than_all_windows_is_fetched() -> None:
    used = pacer()
    assert used.record_if_within(50 * LIMIT, LIMIT, 0) == 0
    assert used.record_if_within(LIMIT, LIMIT, 0) == 40_000


def test_higher_limit_ends_the_throttling_sooner() -> None:
    used = pacer()
    used.record(20 * LIMIT, LIMIT, 0)
    assert used.throttle_ms(LIMIT, 0) == 10_000
    assert used.throttle_ms(10 * LIMIT, 0) == 1000
