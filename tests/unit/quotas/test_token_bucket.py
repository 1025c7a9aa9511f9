"""The token bucket of `controller_mutation_rate`."""

from __future__ import annotations

from moldau.quotas.rate import QuotaWindows
from moldau.quotas.token_bucket import TokenBucket

LIMIT = 5.0


def bucket() -> TokenBucket:
    return TokenBucket(QuotaWindows(10, 1000))


def test_new_bucket_holds_the_limit_of_all_windows() -> None:
    assert bucket().tokens(LIMIT, 0) == 50


def test_bucket_is_refilled_with_the_limit_per_second_up_to_the_burst() -> None:
    tokens = bucket()
    tokens.take(50, LIMIT, 0)
    assert tokens.tokens(LIMIT, 1000) == 5
    assert tokens.tokens(LIMIT, 2500) == 12.5
    assert tokens.tokens(LIMIT, 3_600_000) == 50


def test_request_may_take_more_than_the_bucket_holds() -> None:
    tokens = bucket()
    tokens.take(110, LIMIT, 0)
    assert tokens.tokens(LIMIT, 0) == -60
    assert tokens.throttle_ms(LIMIT, 0) == 12_000
    assert tokens.throttle_ms(LIMIT, 12_000) == 0


def test_empty_bucket_is_not_exhausted() -> None:
    tokens = bucket()
    tokens.take(50, LIMIT, 0)
    assert tokens.throttle_ms(LIMIT, 0) == 0


def test_lower_limit_shrinks_the_bucket() -> None:
    tokens = bucket()
    assert tokens.tokens(LIMIT, 0) == 50
    assert tokens.tokens(1.0, 0) == 10


def test_client_that_waits_for_the_throttle_time_finds_the_bucket_refilled() -> None:
    """Rounded to the nearest millisecond, a third of the limits would end a little too early."""
    for limit in (3.0, 7.0, 11.0):
        tokens = bucket()
        tokens.take(10 * limit + 20, limit, 0)
        assert tokens.tokens(limit, tokens.throttle_ms(limit, 0)) >= 0
