"""Throttle times of clients."""

from __future__ import annotations

from moldau.metadata.image import quota_entity
from moldau.quotas.client_quotas import ClientQuotas

DEFAULT_USER = quota_entity([("user", None)])


def quotas(**limits: float) -> ClientQuotas:
    result = ClientQuotas()
    result.apply({DEFAULT_USER: limits})
    return result


def test_quotas_are_inactive_until_one_is_set() -> None:
    result = ClientQuotas()
    assert not result.active
    result.apply({DEFAULT_USER: {"request_percentage": 10.0}})
    assert result.active
    result.apply({})
    assert not result.active


def test_quotas_of_addresses_do_not_concern_clients() -> None:
    result = ClientQuotas()
    result.apply({quota_entity([("ip", None)]): {"connection_creation_rate": 10.0}})
    assert not result.active


def test_fetch_returns_at_most_what_the_client_may_consume_at_once() -> None:
    assert quotas(consumer_byte_rate=1000.0).fetch.burst("u", "c", 0) == 10_000
    assert quotas(producer_byte_rate=1.0).fetch.burst("u", "c", 0) is None


def test_request_time_throttles_at_most_one_window() -> None:
    request = quotas(request_percentage=1.0).request
    assert request.record("u", "c", 100.0, 0) == 1000
    assert request.throttle_ms("u", "c", 0) == 1000


def test_users_are_measured_separately() -> None:
    produce = quotas(producer_byte_rate=1000.0).produce
    assert produce.record("u", "c", 20_000, 0) > 0
    assert produce.record("v", "c", 5000, 0) == 0
