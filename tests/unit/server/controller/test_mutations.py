"""Which requests are charged to `controller_mutation_rate`, and in which versions the quota is strict."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from moldau.base.clock import ManualClock
from moldau.base.errors import ErrorCode, KafkaError
from moldau.metadata.image import quota_entity
from moldau.protocol.messages.alter_client_quotas import AlterClientQuotasRequest
from moldau.protocol.messages.create_partitions import CreatePartitionsRequest
from moldau.protocol.messages.create_topics import CreateTopicsRequest
from moldau.protocol.messages.delete_topics import DeleteTopicsRequest
from moldau.protocol.schema import Message
from moldau.quotas.mutations import MutationQuota
from moldau.quotas.rate import QuotaWindows
from moldau.server.controller.mutations import ControllerMutations

CONTEXT: Any = SimpleNamespace(principal=SimpleNamespace(name="alice"), client_id="c")


def mutations(limit: float | None = 1.0) -> ControllerMutations:
    quota = MutationQuota(QuotaWindows(10, 1000))
    entity = quota_entity([("user", "alice")])
    quota.sensors.apply({} if limit is None else {entity: {"controller_mutation_rate": limit}})
    return ControllerMutations(quota, ManualClock())


@pytest.mark.parametrize(
    ("request_", "version", "strict"),
    [
        (CreateTopicsRequest(), 6, True),
        (CreateTopicsRequest(), 5, False),
        (DeleteTopicsRequest(), 5, True),
        (DeleteTopicsRequest(), 4, False),
        (CreatePartitionsRequest(), 3, True),
        (CreatePartitionsRequest(), 2, False),
    ],
)
def test_versions_that_know_the_error_are_strict(request_: Message, version: int, strict: bool) -> None:
    quota = mutations()
    first = quota.begin(CONTEXT, request_, version)
    assert first is not None
    first.charge(15, 0)
    second = quota.begin(CONTEXT, request_, version)
    assert second is not None
    if strict:
        with pytest.raises(KafkaError) as refused:
            second.charge(1, 0)
        assert refused.value.code is ErrorCode.THROTTLING_QUOTA_EXCEEDED
    else:
        second.charge(1, 0)


def test_other_requests_are_not_charged() -> None:
    assert mutations().begin(CONTEXT, AlterClientQuotasRequest(), 1) is None


def test_requests_of_a_node_are_not_charged() -> None:
    assert mutations().begin(None, CreateTopicsRequest(), 7) is None


def test_without_quotas_nothing_is_charged() -> None:
    assert mutations(None).begin(CONTEXT, CreateTopicsRequest(), 7) is None
