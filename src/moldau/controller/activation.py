"""The first records of an active controller."""

from __future__ import annotations

from collections.abc import Sequence

from moldau.controller.configs.checks import MIN_ISR
from moldau.metadata.features import ELR_VERSION, METADATA_VERSION, TRANSACTIONS_SUPPORTED
from moldau.metadata.image import ResourceType
from moldau.metadata.records import MetadataRecord
from moldau.protocol.stored.metadata import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    ConfigRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
)


def activation_records(
    bootstrap: Sequence[MetadataRecord] | None, *, in_transaction: bool, min_isr: int
) -> list[MetadataRecord]:
    """Finish what a predecessor left open; give an empty log its `bootstrap` records, in one transaction."""
    records: list[MetadataRecord] = []
    if in_transaction:
        records.append(AbortTransactionRecord(reason="Controller failover"))
    if bootstrap is None:
        return records
    content = list(bootstrap)
    if _level(bootstrap, ELR_VERSION) > 0:
        content.append(
            ConfigRecord(
                resource_type=ResourceType.BROKER, resource_name="", name=MIN_ISR, value=str(min_isr)
            )
        )
    if _level(bootstrap, METADATA_VERSION) < TRANSACTIONS_SUPPORTED:
        return records + content
    return [*records, BeginTransactionRecord(name="Bootstrap records"), *content, EndTransactionRecord()]


def _level(records: Sequence[MetadataRecord], feature: str) -> int:
    levels = [r.feature_level for r in records if isinstance(r, FeatureLevelRecord) and r.name == feature]
    return levels[-1] if levels else 0
