"""Subscriptions of clients, and when a client may ask and push (KIP-714)."""

from __future__ import annotations

import re

import pytest

from moldau.base.errors import ErrorCode, KafkaError
from moldau.metrics.telemetry.subscriptions import (
    DEFAULT_INTERVAL_MS,
    MAX_CLIENTS,
    ClientInstance,
    ClientSubscriptions,
    Subscription,
)

CLIENT = {"client_id": "shop-1", "client_software_name": "librdkafka"}


def client_with(*subscriptions: Subscription) -> ClientInstance:
    known = ClientSubscriptions()
    known.replace(subscriptions)
    return known.client(b"i", CLIENT, 0)


def test_the_union_of_matching_subscriptions_counts() -> None:
    found = client_with(
        Subscription(("a", "b"), 5000, {"client_id": re.compile("shop-.*")}),
        Subscription(("b", "c"), 1000, {}),
        Subscription(("d",), 100, {"client_id": re.compile("shop")}),
        Subscription(("e",), 100, {"client_id": re.compile(".*"), "client_software_name": re.compile("x")}),
    )
    assert (found.metrics, found.interval_ms) == (("a", "b", "c"), 1000)


def test_all_metrics_include_the_others() -> None:
    found = client_with(Subscription(("a",), 1000, {}), Subscription(("*",), 2000, {}))
    assert (found.metrics, found.interval_ms) == (("*",), 1000)


def test_without_a_subscription_nothing_is_pushed() -> None:
    found = client_with()
    assert (found.metrics, found.interval_ms) == ((), DEFAULT_INTERVAL_MS)


def test_the_id_changes_with_the_subscriptions() -> None:
    known = ClientSubscriptions()
    known.replace([Subscription(("a",), 1000, {})])
    first = known.client(b"i", CLIENT, 0).subscription_id
    assert known.client(b"i", CLIENT, 0).subscription_id == first
    assert known.client(b"j", CLIENT, 0).subscription_id != first
    known.replace([Subscription(("b",), 1000, {})])
    assert known.client(b"i", CLIENT, 0).subscription_id != first
    assert -(2**31) <= first < 2**31


def test_the_least_recent_client_is_forgotten() -> None:
    known = ClientSubscriptions()
    for number in range(MAX_CLIENTS + 1):
        known.client(number.to_bytes(4, "big"), CLIENT, 0)
        known.client(bytes(4), CLIENT, 0)
    assert len(known) == MAX_CLIENTS
    assert bytes(4) in known
    assert (1).to_bytes(4, "big") not in known


def test_a_client_without_requests_is_forgotten_after_three_intervals() -> None:
    known = ClientSubscriptions()
    known.replace([Subscription(("a",), 30_000, {})])
    first = known.client(b"i", CLIENT, 0)
    assert known.client(b"i", CLIENT, 89_999) is first
    known.client(b"other", CLIENT, 120_000)
    known.expire(179_998)
    assert b"i" in known
    known.expire(179_999)
    assert b"i" not in known and len(known) == 1
    # Not only scrapes forget clients.
    known.client(b"i", CLIENT, 900_000)
    assert b"other" not in known


def test_a_client_is_kept_for_a_minute_at_least() -> None:
    known = ClientSubscriptions()
    known.replace([Subscription(("a",), 100, {})])
    known.client(b"i", CLIENT, 0)
    known.expire(59_999)
    assert b"i" in known
    known.expire(60_000)
    assert b"i" not in known


def test_a_client_is_forgotten_with_its_last_connection() -> None:
    known = ClientSubscriptions()
    before, after = object(), object()
    known.client(b"i", CLIENT, 0, before)
    known.client(b"i", CLIENT, 1, after)
    known.forget(b"i", before)
    assert b"i" in known
    known.forget(b"i", after)
    assert b"i" not in known


def refusal(check: object, *arguments: object, **named: object) -> ErrorCode:
    assert callable(check)
    with pytest.raises(KafkaError) as raised:
        check(*arguments, **named)
    return raised.value.code


def test_a_client_asks_once_per_interval() -> None:
    client = client_with(Subscription(("*",), 1000, {}))
    client.check_ask(0)
    assert refusal(client.check_ask, 999) is ErrorCode.THROTTLING_QUOTA_EXCEEDED
    client.check_ask(1000)
    client.last_error = ErrorCode.UNKNOWN_SUBSCRIPTION_ID
    client.check_ask(1001)
    assert refusal(client.check_ask, 1002) is ErrorCode.THROTTLING_QUOTA_EXCEEDED


def test_a_client_pushes_once_per_interval_and_at_once_after_it_asked() -> None:
    client = client_with(Subscription(("*",), 1000, {}))
    right = client.subscription_id
    client.check_ask(0)
    client.check_push(1, right, terminating=False)
    assert refusal(client.check_push, 2, right, terminating=False) is ErrorCode.THROTTLING_QUOTA_EXCEEDED
    client.check_push(3, right, terminating=True)
    client.check_push(1001, right, terminating=False)
    assert refusal(client.check_push, 2001, right + 1, terminating=False) is ErrorCode.UNKNOWN_SUBSCRIPTION_ID
    client.terminating = True
    assert refusal(client.check_push, 4000, right, terminating=True) is ErrorCode.INVALID_REQUEST
