"""The transaction coordinator's state machine over one partition of `__transaction_state`.

Every step of a transaction is one record with the whole state of its transactional id. An end takes two: the
*prepared* state decides it and requests the markers as an effect, the *complete* state follows when every
partition has its marker. A new leader of the partition writes the markers of prepared transactions again, so
a decided end always happens.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TypeVar

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import TopicPartition
from moldau.metadata.delta import MetadataDelta
from moldau.metadata.image import MetadataImage
from moldau.protocol.stored.transaction_state import TransactionLogKey, TransactionLogValue
from moldau.statemachine.coordinator_records import CoordinatorRecord, Entry, Producer
from moldau.statemachine.decision import Decision
from moldau.statemachine.effects import WriteTxnMarkers
from moldau.statemachine.timers import Timers
from moldau.transactions import add_partitions, end_txn, init_producer_id
from moldau.transactions.context import ProducerResponse, TransactionContext, markers_of
from moldau.transactions.end_txn import EndTxn
from moldau.transactions.init_producer_id import InitProducerId
from moldau.transactions.listing import TransactionFilter
from moldau.transactions.records import from_record, to_record, tombstone
from moldau.transactions.state import KNOWN_STATUS, Transaction

logger = logging.getLogger(__name__)

_R = TypeVar("_R")

#: The number of ids that expire in one batch.
_EXPIRATION_BATCH = 500
_COMPLETE_PREPARED = "complete-prepared-transactions"


class TransactionShard:
    def __init__(self, context: TransactionContext, coordinator_epoch: int, timers: Timers) -> None:
        self._context = context
        self.coordinator_epoch = coordinator_epoch
        self._timers = timers
        self._transactions: dict[str, Transaction] = {}

    # State.

    def replay(self, entries: Sequence[Entry], base_offset: int) -> None:
        for entry in entries:
            if not isinstance(entry, CoordinatorRecord) or not isinstance(entry.key, TransactionLogKey):
                continue
            transactional_id = entry.key.transactional_id
            if not isinstance(entry.value, TransactionLogValue):
                self._transactions.pop(transactional_id, None)
            elif entry.value.transaction_status in KNOWN_STATUS:
                self._transactions[transactional_id] = from_record(transactional_id, entry.value)
            else:
                logger.warning("%s has an unknown transaction state: %r", transactional_id, entry.value)

    def activate(self, image: MetadataImage) -> None:
        """Complete the transactions that an earlier coordinator has prepared."""
        prepared = [each for each in self._transactions.values() if each.is_prepared]
        if prepared:
            markers = [markers_of(each, self.coordinator_epoch) for each in prepared]
            logger.info("completing %d prepared transactions", len(markers))
            self._timers.schedule(_COMPLETE_PREPARED, 0, lambda: Decision((), None, effects=markers))

    def image_changed(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Ignore the metadata; partition leaders are looked up when markers are written."""

    def count_by_state(self) -> Counter[str]:
        """Return the number of transactional ids in each state."""
        return Counter(each.status.name for each in self._transactions.values())

    # Requests of producers.

    def init_producer_id(self, request: InitProducerId) -> Decision[Entry, ProducerResponse]:
        found = self._transactions.get(request.transactional_id)
        new_producer_id, now_ms = self._context.new_producer_id, self._now_ms()
        initialized = init_producer_id.initialize(found, request, new_producer_id, now_ms)
        if initialized is None:
            return self._abort_and_fence(self._transactions[request.transactional_id])
        response = ProducerResponse(
            producer_id=initialized.producer_id, producer_epoch=initialized.producer_epoch
        )
        return self._store(initialized, response)

    def add_partitions(
        self,
        transactional_id: str,
        producer: Producer,
        partitions: frozenset[TopicPartition],
        client_version: int,
    ) -> Decision[Entry, None]:
        found = self._transactions.get(_checked(transactional_id))
        added = add_partitions.add(found, producer, partitions, client_version, self._now_ms())
        return Decision((), None) if added is None else self._store(added, None)

    def verify_partitions(
        self, transactional_id: str, producer: Producer, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, ErrorCode]:
        found = self._transactions.get(_checked(transactional_id))
        return add_partitions.verify(found, producer, partitions)

    def end_transaction(self, request: EndTxn) -> Decision[Entry, ProducerResponse]:
        found = self._transactions.get(_checked(request.transactional_id))
        ended = end_txn.end(found, request, self._context.new_producer_id, self._now_ms())
        current = (found if ended is None else ended.completed(0)) if request.client_version >= 2 else None
        response = ProducerResponse()
        if current is not None:
            response = ProducerResponse(
                producer_id=current.producer_id, producer_epoch=current.producer_epoch
            )
        return Decision((), response) if ended is None else self._store(ended, response)

    # The coordinator's own decisions.

    def complete(self, markers: WriteTxnMarkers) -> Decision[Entry, None]:
        """Complete a transaction after every partition has its marker."""
        found = self._transactions.get(markers.transactional_id)
        if found is None or not found.is_prepared:
            return Decision((), None)
        if markers_of(found, self.coordinator_epoch) != markers:
            return Decision((), None)
        return self._store(found.completed(self._now_ms()), None)

    def timed_out(self) -> list[str]:
        now_ms = self._now_ms()
        return [each.transactional_id for each in self._transactions.values() if each.timed_out(now_ms)]

    def abort_timed_out(self, transactional_id: str) -> Decision[Entry, None]:
        found = self._transactions.get(transactional_id)
        if found is None or not found.timed_out(self._now_ms()):
            return Decision((), None)
        logger.info(
            "aborting the transaction of %s: it exceeded its timeout of %d ms",
            transactional_id,
            found.timeout_ms,
        )
        aborted = self._abort_and_fence(found)
        return Decision(aborted.records, None, on_appended=aborted.on_appended, effects=aborted.effects)

    def expire(self) -> Decision[Entry, int]:
        """Remove a batch of expired ids; return how many. More may be left unless it is 0."""
        now_ms, expiration_ms = self._now_ms(), self._context.settings().id_expiration_ms
        expired = [each for each in self._transactions.values() if each.expired(now_ms, expiration_ms)]
        records = [tombstone(each.transactional_id) for each in expired[:_EXPIRATION_BATCH]]
        return Decision(records, len(records))

    # Admin requests.

    def describe(self, transactional_id: str) -> Transaction:
        found = self._transactions.get(_checked(transactional_id))
        if found is None:
            raise KafkaError(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
        return found

    def list(self, filter_: TransactionFilter) -> list[Transaction]:
        now_ms = self._now_ms()
        return [each for each in self._transactions.values() if filter_.matches(each, now_ms)]

    def _abort_and_fence(self, found: Transaction) -> Decision[Entry, ProducerResponse]:
        version = self._context.transaction_version()
        aborted = init_producer_id.abort_and_fence(
            found, version, self._context.new_producer_id, self._now_ms()
        )
        return self._store(aborted, ProducerResponse(ErrorCode.CONCURRENT_TRANSACTIONS))

    def _store(self, transaction: Transaction, response: _R) -> Decision[Entry, _R]:
        def keep_soft_fields() -> None:
            # The replayed record lacks the fields that serve retries.
            self._transactions[transaction.transactional_id] = transaction

        effects = [markers_of(transaction, self.coordinator_epoch)] if transaction.is_prepared else []
        record = to_record(transaction, self._context.transaction_version())
        return Decision([record], response, on_appended=keep_soft_fields, effects=effects)

    def _now_ms(self) -> int:
        return self._context.clock.time_ms()


def _checked(transactional_id: str) -> str:
    if not transactional_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    return transactional_id
