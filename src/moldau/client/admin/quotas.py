"""Client quotas (KIP-546)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple

from moldau.client.wire.cluster import Cluster
from moldau.client.wire.errors import check
from moldau.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntityData,
    OpData,
    RequestEntryData,
)
from moldau.protocol.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)

#: Pairs of entity type ("user", "client-id", "ip") and name; None stands for the default entity.
QuotaEntity = tuple[tuple[str, str | None], ...]


class MatchType(IntEnum):
    EXACT = 0
    DEFAULT = 1
    ANY = 2


class QuotaFilter(NamedTuple):
    entity_type: str
    match_type: MatchType
    match: str | None = None


async def describe_client_quotas(
    cluster: Cluster, components: Sequence[QuotaFilter], *, strict: bool = True
) -> dict[QuotaEntity, dict[str, float]]:
    """Return the quotas of matching entities; `strict` excludes entities with further components."""
    request = DescribeClientQuotasRequest(
        components=[
            ComponentData(entity_type=c.entity_type, match_type=c.match_type, match=c.match)
            for c in components
        ],
        strict=strict,
    )
    answer: DescribeClientQuotasResponse = await cluster.retry(lambda: cluster.ask_any(request))
    check(answer.error_code, answer.error_message)
    return {
        tuple((part.entity_type, part.entity_name) for part in entry.entity): {
            value.key: value.value for value in entry.values
        }
        for entry in answer.entries or []
    }


async def alter_client_quotas(
    cluster: Cluster, entity: QuotaEntity, values: Mapping[str, float | None]
) -> None:
    """Set quotas of an entity; None removes one."""
    request = AlterClientQuotasRequest(
        entries=[
            RequestEntryData(
                entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in entity],
                ops=[
                    OpData(key=key, value=value or 0.0, remove=value is None) for key, value in values.items()
                ],
            )
        ]
    )
    answer: AlterClientQuotasResponse = await cluster.retry(lambda: cluster.ask_controller(request))
    for entry in answer.entries:
        check(entry.error_code, entry.error_message)
