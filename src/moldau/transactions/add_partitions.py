"""AddPartitionsToTxn and AddOffsetsToTxn: add partitions to a transaction, or verify that they were added."""

from __future__ import annotations

from collections.abc import Iterable

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import TopicPartition
from moldau.statemachine.coordinator_records import Producer
from moldau.transactions.state import Transaction


def add(
    found: Transaction | None,
    producer: Producer,
    partitions: frozenset[TopicPartition],
    client_version: int,
    now_ms: int,
) -> Transaction | None:
    """Return the transaction with these partitions; None if it has them already."""
    if found is None:
        raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if found.is_prepared:
        # Checked before the producer: it may already use the id it gets after this transaction.
        raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
    _check_producer(found, producer)
    if found.is_ongoing and partitions <= found.partitions:
        return None
    return found.with_partitions(partitions, client_version, now_ms)


def verify(
    found: Transaction | None, producer: Producer, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, ErrorCode]:
    """Return an error code for each partition: TRANSACTION_ABORTABLE if it was not added."""
    if found is None:
        raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    _check_producer(found, producer)
    if found.is_prepared:
        raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
    return {
        each: ErrorCode.NONE if each in found.partitions else ErrorCode.TRANSACTION_ABORTABLE
        for each in partitions
    }


def _check_producer(found: Transaction, producer: Producer) -> None:
    if found.producer_id != producer.id:
        raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if found.producer_epoch != producer.epoch:
        raise KafkaError(ErrorCode.PRODUCER_FENCED)
