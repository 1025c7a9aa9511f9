"""The dependencies of transaction shards, their settings, and the values they return."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from moldau.base.clock import Clock
from moldau.base.errors import ErrorCode
from moldau.config.broker.config import BrokerConfig
from moldau.statemachine.coordinator_records import Producer
from moldau.statemachine.effects import WriteTxnMarkers
from moldau.transactions.state import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, Transaction, TransactionStatus


class TransactionSettings(NamedTuple):
    max_timeout_ms: int
    id_expiration_ms: int
    two_phase_commit: bool

    @classmethod
    def from_config(cls, config: BrokerConfig) -> TransactionSettings:
        return cls(
            max_timeout_ms=config["transaction.max.timeout.ms"],
            id_expiration_ms=config["transactional.id.expiration.ms"],
            two_phase_commit=config["transaction.two.phase.commit.enable"],
        )


@dataclass(frozen=True, slots=True)
class TransactionContext:
    clock: Clock
    settings: Callable[[], TransactionSettings]
    #: The finalized level of the feature `transaction.version`.
    transaction_version: Callable[[], int]
    #: Allocate a producer id; raises COORDINATOR_LOAD_IN_PROGRESS while the node has none left.
    new_producer_id: Callable[[], int]


class ProducerResponse(NamedTuple):
    """The producer id and epoch that a response carries."""

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
