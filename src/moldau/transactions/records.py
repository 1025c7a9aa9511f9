"""The records of `__transaction_state`."""

from __future__ import annotations

from moldau.base.ids import TopicPartition
from moldau.protocol.stored.transaction_state import PartitionsSchema, TransactionLogKey, TransactionLogValue
from moldau.statemachine.coordinator_records import CoordinatorRecord
from moldau.transactions.state import Transaction, TransactionStatus

#: The level of `transaction.version` from which values have tagged fields (KIP-890).
_TAGGED_SINCE = 1


def to_record(transaction: Transaction, transaction_version: int) -> CoordinatorRecord:
    """`transaction_version` is the feature level of the cluster; it selects the version of the value."""
    version = 1 if transaction_version >= _TAGGED_SINCE else 0
    empty = transaction.status is TransactionStatus.EMPTY
    value = TransactionLogValue(
        producer_id=transaction.producer_id,
        producer_epoch=transaction.producer_epoch,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_status=transaction.status,
        transaction_partitions=None if empty else _partitions(transaction.partitions),
        transaction_last_update_timestamp_ms=transaction.updated_ms,
        transaction_start_timestamp_ms=transaction.started_ms,
    )
    if version >= 1:
        value.previous_producer_id = transaction.previous_producer_id
        value.next_producer_id = transaction.next_producer_id
        value.client_transaction_version = transaction.client_version
    return CoordinatorRecord(TransactionLogKey(transactional_id=transaction.transactional_id), value, version)


def tombstone(transactional_id: str) -> CoordinatorRecord:
    return CoordinatorRecord(TransactionLogKey(transactional_id=transactional_id), None)


def from_record(transactional_id: str, value: TransactionLogValue) -> Transaction:
    return Transaction(
        transactional_id=transactional_id,
        producer_id=value.producer_id,
        timeout_ms=value.transaction_timeout_ms,
        updated_ms=value.transaction_last_update_timestamp_ms,
        producer_epoch=value.producer_epoch,
        status=TransactionStatus(value.transaction_status),
        partitions=frozenset(
            TopicPartition(each.topic, index)
            for each in value.transaction_partitions or ()
            for index in each.partition_ids
        ),
        started_ms=value.transaction_start_timestamp_ms,
        previous_producer_id=value.previous_producer_id,
        next_producer_id=value.next_producer_id,
        client_version=value.client_transaction_version,
    )


def _partitions(partitions: frozenset[TopicPartition]) -> list[PartitionsSchema]:
    topics: dict[str, list[int]] = {}
    for topic, index in sorted(partitions):
        topics.setdefault(topic, []).append(index)
    return [PartitionsSchema(topic=topic, partition_ids=ids) for topic, ids in topics.items()]
