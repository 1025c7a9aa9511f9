"""How records of decisions are grouped into batches."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from moldau.base.errors import ErrorCode, KafkaError
from moldau.metadata.records import MetadataRecord, encode_record
from moldau.protocol.stored.metadata import BrokerRegistrationChangeRecord, NoOpRecord, PartitionChangeRecord
from moldau.quorum.accumulator import Accumulator
from tests.unit.metadata.builders import uid

VERSION = 30
FENCED = BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=5, fenced=1)


def changes(count: int) -> list[MetadataRecord]:
    return [PartitionChangeRecord(partition_id=index, topic_id=uid(1), isr=[2]) for index in range(count)]


def encoded(records: Sequence[MetadataRecord]) -> list[bytes]:
    return [encode_record(record, VERSION) for record in records]


def accumulator(max_batch_bytes: int = 1000) -> Accumulator:
    return Accumulator(0, max_batch_bytes, 10_000, lambda: VERSION, lambda: None)


def test_small_decisions_share_a_batch() -> None:
    records = accumulator()
    assert records.append(changes(2)) == 1
    assert records.append([NoOpRecord()]) == 2
    group = records.take()
    assert group.batches == [encoded([*changes(2), NoOpRecord()])]


def test_separable_records_are_spread_over_several_batches() -> None:
    records = accumulator()
    fencing = [*changes(100), FENCED]
    assert records.append(fencing) == 100
    assert records.append([NoOpRecord()]) == 101
    group = records.take()
    assert len(group.batches) > 2
    assert all(sum(map(len, batch)) <= 500 for batch in group.batches)
    assert [value for batch in group.batches for value in batch] == encoded([*fencing, NoOpRecord()])


def test_inseparable_decision_larger_than_a_batch_is_rejected() -> None:
    records = accumulator()
    with pytest.raises(KafkaError) as refused:
        records.append([*changes(100), NoOpRecord()])
    assert refused.value.code == ErrorCode.POLICY_VIOLATION
    with pytest.raises(KafkaError) as refused:
        records.append(changes(1000))
    assert refused.value.code == ErrorCode.POLICY_VIOLATION
    assert records.is_empty
