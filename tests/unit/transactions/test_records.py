"""TransactionLog records in both versions of their value."""

from __future__ import annotations

from moldau.base.ids import TopicPartition
from moldau.protocol.stored.coordinator import TRANSACTION_STATE, encode_value
from moldau.protocol.stored.transaction_state import TransactionLogValue
from moldau.statemachine.coordinator_records import CoordinatorRecord, decode_entries, encode_entries
from moldau.transactions.records import from_record, to_record, tombstone
from moldau.transactions.state import Transaction, TransactionStatus

ONGOING = Transaction(
    "app",
    producer_id=7,
    timeout_ms=60_000,
    updated_ms=2000,
    producer_epoch=3,
    status=TransactionStatus.ONGOING,
    partitions=frozenset({TopicPartition("b", 1), TopicPartition("a", 2), TopicPartition("b", 0)}),
    started_ms=1000,
    previous_producer_id=6,
    next_producer_id=8,
    client_version=2,
)


def stored(transaction: Transaction, level: int) -> Transaction:
    data = memoryview(encode_entries([to_record(transaction, level)], 5000))
    [(_, entry)] = decode_entries(TRANSACTION_STATE, data)
    assert isinstance(entry, CoordinatorRecord)
    assert isinstance(entry.value, TransactionLogValue)
    assert entry.version == min(level, 1)
    return from_record("app", entry.value)


def test_all_fields_survive_with_version_1_values() -> None:
    assert stored(ONGOING, 1) == stored(ONGOING, 2) == ONGOING


def test_version_0_values_lose_the_tagged_fields() -> None:
    known = stored(ONGOING, 0)
    assert (known.previous_producer_id, known.next_producer_id, known.client_version) == (-1, -1, 0)
    assert (known.producer_id, known.partitions, known.started_ms) == (7, ONGOING.partitions, 1000)


def test_partitions_are_null_only_in_the_empty_state() -> None:
    ended = ONGOING.prepared(committed=True, client_version=0, next_producer_id=-1, now_ms=1).completed(2)
    record = to_record(ended, 2)
    assert isinstance(record.value, TransactionLogValue)
    assert record.value.transaction_partitions == []
    record = to_record(ended.initialized(4, -1, 1000, 3000), 2)
    assert isinstance(record.value, TransactionLogValue)
    assert record.value.transaction_partitions is None


def test_version_0_values_have_kafkas_bytes() -> None:
    record = to_record(ONGOING, 0)
    assert isinstance(record.value, TransactionLogValue)
    assert encode_value(record.value, 0).hex() == (
        "0000" + "0000000000000007" + "0003" + "0000ea60" + "01"
        "00000002" + "000161" + "00000001" + "00000002" + "000162" + "00000002" + "00000000" + "00000001"
        "00000000000007d0" + "00000000000003e8"
    )  # fmt: skip


def test_a_tombstone_has_no_value() -> None:
    assert tombstone("app").value is None
