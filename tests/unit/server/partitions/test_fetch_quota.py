"""How much a fetch returns, and when it is answered empty."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from moldau.base.clock import ManualClock
from moldau.metadata.image import quota_entity
from moldau.quotas.client_quotas import ClientQuotas
from moldau.server.partitions.fetch_quota import FetchQuota

CONTEXT: Any = SimpleNamespace(principal=SimpleNamespace(name="alice"), client_id="c")


def fetch_quota(**limits: float) -> tuple[FetchQuota, ClientQuotas]:
    quotas = ClientQuotas()
    quotas.apply({quota_entity([("user", "alice")]): limits})
    return FetchQuota(quotas, ManualClock(), CONTEXT), quotas


def test_response_has_at_most_what_the_client_may_consume_at_once() -> None:
    assert fetch_quota(consumer_byte_rate=1000.0)[0].max_bytes() == 10_000
    assert fetch_quota(producer_byte_rate=1000.0)[0].max_bytes() == 2**31 - 1


def test_response_over_the_rate_is_not_counted() -> None:
    quota, _ = fetch_quota(consumer_byte_rate=1000.0)
    assert quota.record_if_within(9000, 1) == 0
    assert quota.record_if_within(5000, 1) == quota.record_if_within(5000, 1) > 0


def test_response_of_a_client_over_its_request_time_is_not_counted() -> None:
    quota, quotas = fetch_quota(consumer_byte_rate=1000.0, request_percentage=1.0)
    quotas.request.record("alice", "c", 1000.0, 1_000_000)
    assert quota.record_if_within(1, 1) == 1000
    assert quotas.fetch.throttle_ms("alice", "c", 1_000_000) == 0


def test_share_fetch_is_throttled_before_it_acquires_records() -> None:
    quota, _ = fetch_quota(consumer_byte_rate=1000.0)
    assert quota.throttle_ms() == 0
    assert quota.record(20_000, 1) > 0
    assert quota.throttle_ms() > 0
