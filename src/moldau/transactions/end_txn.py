"""EndTxn: commit or abort a transaction.

In the classic flow a producer keeps its epoch, and repeating the same end succeeds again. With an epoch per
transaction (`transaction.version` 2, KIP-890) the response carries the producer's next epoch, so the epoch of
a request tells a retry from the end of the next transaction. Such a producer may not know whether its
transaction has started, so it may abort one that has not.

                 retry                              current epoch
state            abort             commit           abort             commit
Empty            fenced            fenced           next epoch        invalid
CompleteAbort    succeeds again    invalid          next epoch        invalid
CompleteCommit   invalid           succeeds again   next epoch        invalid
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from moldau.base.errors import ErrorCode, KafkaError
from moldau.statemachine.coordinator_records import Producer
from moldau.transactions.state import (
    EPOCH_PER_TRANSACTION,
    MAX_EPOCH,
    NO_PRODUCER_ID,
    Transaction,
    TransactionStatus,
)

_COMPLETE = (TransactionStatus.COMPLETE_COMMIT, TransactionStatus.COMPLETE_ABORT)


class EndTxn(NamedTuple):
    transactional_id: str
    producer: Producer
    committed: bool
    #: The `transaction.version` of the client.
    client_version: int


def end(
    found: Transaction | None, request: EndTxn, new_producer_id: Callable[[], int], now_ms: int
) -> Transaction | None:
    """Return the prepared transaction; None if it has already ended this way."""
    if found is None:
        raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if request.client_version < EPOCH_PER_TRANSACTION:
        return _end_classic(found, request, now_ms)
    if _is_successful_retry(found, request):
        return None
    return found.prepared(
        committed=request.committed,
        client_version=request.client_version,
        next_producer_id=new_producer_id() if found.epoch_exhausted else NO_PRODUCER_ID,
        now_ms=now_ms,
    )


def _end_classic(found: Transaction, request: EndTxn, now_ms: int) -> Transaction | None:
    if found.producer_id != request.producer.id:
        raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if found.producer_epoch != request.producer.epoch:
        raise KafkaError(ErrorCode.PRODUCER_FENCED)
    if found.is_prepared:
        raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
    if found.is_ongoing:
        return found.prepared(
            committed=request.committed, client_version=0, next_producer_id=NO_PRODUCER_ID, now_ms=now_ms
        )
    if found.status is not _completed(request):
        raise _invalid(found, request)
    return None


def _is_successful_retry(found: Transaction, request: EndTxn) -> bool:
    """Return whether the transaction has already ended this way; raise if the request is not allowed."""
    if found.is_prepared:
        raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
    producer_id, epoch = request.producer
    after_rotation = (
        found.previous_producer_id == producer_id and epoch == MAX_EPOCH - 1 and found.producer_epoch == 0
    )
    if found.producer_id != producer_id and not after_rotation:
        raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    retry = after_rotation or found.producer_epoch == epoch + 1
    allowed = (found.status in _COMPLETE and retry) or found.producer_epoch == epoch
    if not allowed:
        raise KafkaError(ErrorCode.PRODUCER_FENCED)
    if found.is_ongoing:
        return False
    if retry and found.status is _completed(request):
        return True
    if retry or request.committed:
        raise _invalid(found, request)
    return False


def _completed(request: EndTxn) -> TransactionStatus:
    return TransactionStatus.COMPLETE_COMMIT if request.committed else TransactionStatus.COMPLETE_ABORT


def _invalid(found: Transaction, request: EndTxn) -> KafkaError:
    word = "commit" if request.committed else "abort"
    return KafkaError(
        ErrorCode.INVALID_TXN_STATE,
        f"Cannot {word} {request.transactional_id} in state {found.status.title}.",
    )
