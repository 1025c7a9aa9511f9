"""InitProducerId with a transactional id: assigns the producer epoch and fences earlier producers of the id.

An ongoing transaction is aborted first, with an epoch that no producer uses; until that is complete, the new
producer gets CONCURRENT_TRANSACTIONS and retries. A producer that recovers from an error (KIP-360) sends its
id and epoch: it gets the next epoch, the same one again if only the response was lost, and PRODUCER_FENCED if
another producer has taken over.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from moldau.base.errors import ErrorCode, KafkaError
from moldau.statemachine.coordinator_records import Producer
from moldau.transactions.context import TransactionSettings
from moldau.transactions.state import (
    EPOCH_PER_TRANSACTION,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_TIMEOUT_MS,
    Transaction,
    epoch_exhausted,
)


class InitProducerId(NamedTuple):
    transactional_id: str
    timeout_ms: int
    #: The id and epoch of a producer that recovers from an error.
    expected: Producer | None = None
    two_phase_commit: bool = False
    keep_prepared: bool = False


def check_request(request: InitProducerId, settings: TransactionSettings) -> InitProducerId:
    """Validate a request without looking at the state; return it with its effective timeout."""
    if request.transactional_id == "":
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    if request.two_phase_commit and not settings.two_phase_commit:
        raise KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if request.keep_prepared:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
    if request.two_phase_commit:
        return request._replace(timeout_ms=NO_TIMEOUT_MS)
    if not 0 < request.timeout_ms <= settings.max_timeout_ms:
        raise KafkaError(ErrorCode.INVALID_TRANSACTION_TIMEOUT)
    return request


def initialize(
    found: Transaction | None, request: InitProducerId, new_producer_id: Callable[[], int], now_ms: int
) -> Transaction | None:
    """Return the id with its new producer; None if an ongoing transaction must be aborted first."""
    if found is None:
        found = Transaction(request.transactional_id, new_producer_id(), request.timeout_ms, now_ms)
    if found.is_prepared:
        raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
    expected = request.expected
    if expected is not None and not _may_continue(found, expected):
        raise KafkaError(ErrorCode.PRODUCER_FENCED)
    if found.is_ongoing:
        return None
    if not found.epoch_exhausted:
        epoch, last = _next_epoch(found, expected)
        return found.initialized(epoch, last, request.timeout_ms, now_ms)
    if expected is not None and expected.epoch != found.producer_epoch:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "The producer id has no epochs left.")
    last = NO_PRODUCER_EPOCH if expected is None else found.producer_epoch
    return found.rotated(new_producer_id(), last, request.timeout_ms, now_ms)


def abort_and_fence(
    found: Transaction, transaction_version: int, new_producer_id: Callable[[], int], now_ms: int
) -> Transaction:
    """Prepare the abort of an ongoing transaction with an epoch that fences its producer."""
    if transaction_version < EPOCH_PER_TRANSACTION:
        return found.fenced().prepared(
            committed=False, client_version=0, next_producer_id=NO_PRODUCER_ID, now_ms=now_ms
        )
    return found.prepared(
        committed=False,
        client_version=transaction_version,
        next_producer_id=new_producer_id() if found.epoch_exhausted else NO_PRODUCER_ID,
        now_ms=now_ms,
    )


def _may_continue(found: Transaction, expected: Producer) -> bool:
    """Check the producer id only; a retry may carry the id before the last rotation."""
    return (
        found.producer_epoch == NO_PRODUCER_EPOCH
        or expected.id == found.producer_id
        or (expected.id == found.previous_producer_id and epoch_exhausted(expected.epoch))
    )


def _next_epoch(found: Transaction, expected: Producer | None) -> tuple[int, int]:
    """Return the next epoch, and the last epoch to store in case the response is lost."""
    current = found.producer_epoch
    if expected is None:
        return current + 1, NO_PRODUCER_EPOCH
    if current in (NO_PRODUCER_EPOCH, expected.epoch):
        return current + 1, current
    if expected.epoch == found.last_producer_epoch:
        return current, found.last_producer_epoch
    raise KafkaError(ErrorCode.PRODUCER_FENCED)
