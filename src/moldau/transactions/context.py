"""What every shard of the transaction coordinator is handed, and what it hands out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from moldau.base.clock import Clock
from moldau.base.errors import ErrorCode
from moldau.statemachine.coordinator_records import Producer
from moldau.statemachine.effects import WriteTxnMarkers
from moldau.transactions.settings import TransactionSettings
from moldau.transactions.state import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, Transaction, TransactionStatus


@dataclass(frozen=True, slots=True)
class TransactionContext:
    clock: Clock
    settings: Callable[[], TransactionSettings]
    #: The level of `transaction.version` that the cluster has.
    transaction_version: Callable[[], int]
    #: A producer id nobody has; COORDINATOR_LOAD_IN_PROGRESS when none is at hand just now.
    new_producer_id: Callable[[], int]


class ProducerAnswer(NamedTuple):
    """What a producer is told about itself."""

    error: ErrorCode = ErrorCode.NONE
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH


def markers_of(transaction: Transaction, coordinator_epoch: int) -> WriteTxnMarkers:
    """The effect that completes a prepared transaction."""
    return WriteTxnMarkers(
        transaction.transactional_id,
        Producer(transaction.producer_id, transaction.producer_epoch),
        transaction.status is TransactionStatus.PREPARE_COMMIT,
        coordinator_epoch,
        transaction.partitions,
        transaction.client_version,
    )
