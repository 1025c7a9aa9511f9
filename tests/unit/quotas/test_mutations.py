"""Strict and permissive quotas of controller mutations."""

from __future__ import annotations

import pytest

from moldau.base.errors import ErrorCode, KafkaError
from moldau.metadata.image import quota_entity
from moldau.quotas.mutations import MutationQuota, MutationRequest
from moldau.quotas.rate import QuotaWindows


def quota(limit: float = 1.0) -> MutationQuota:
    result = MutationQuota(QuotaWindows(10, 1000))
    result.sensors.apply({quota_entity([("user", None)]): {"controller_mutation_rate": limit}})
    return result


def request(mutations: MutationQuota, *, strict: bool, now_ms: int = 0) -> MutationRequest:
    return mutations.request("u", "c", strict=strict, now_ms=now_ms)


def test_strict_quota_refuses_changes_only_while_exhausted() -> None:
    mutations = quota()
    first = request(mutations, strict=True)
    first.charge(15, 0)
    assert first.throttle_ms(0) == 0, "not exhausted before the change"
    second = request(mutations, strict=True)
    with pytest.raises(KafkaError) as refused:
        second.charge(1, 0)
    assert refused.value.code is ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert second.throttle_ms(0) == 5000
    third = request(mutations, strict=True, now_ms=5000)
    third.charge(1, 5000)
    assert third.throttle_ms(5000) == 0


def test_refused_change_is_not_charged() -> None:
    mutations = quota()
    request(mutations, strict=True).charge(11, 0)
    for _ in range(3):
        refused = request(mutations, strict=True)
        with pytest.raises(KafkaError):
            refused.charge(100, 0)
        assert refused.throttle_ms(0) == 1000


def test_permissive_quota_accepts_and_throttles() -> None:
    mutations = quota()
    first = request(mutations, strict=False)
    first.charge(15, 0)
    assert first.throttle_ms(0) == 5000
    second = request(mutations, strict=False)
    second.charge(1, 0)
    assert second.throttle_ms(0) == 6000


def test_time_until_the_response_is_part_of_the_throttle_time() -> None:
    mutations = quota()
    slow = request(mutations, strict=False)
    slow.charge(15, 0)
    assert slow.throttle_ms(1500) == 3500
    assert slow.throttle_ms(60_000) == 0


def test_client_without_a_limit_is_not_charged() -> None:
    free = MutationQuota(QuotaWindows()).request("u", "c", strict=True, now_ms=0)
    free.charge(10**6, 0)
    assert free.throttle_ms(0) == 0
