"""The transaction coordinator's state machine over one partition of `__transaction_state`.

Every step of a transaction is one record, the whole state of its id. An end has two: *prepared*, which
decides it and has the markers as its effect, and *completed*, once every partition has its marker. Whoever
leads the partition next finds what was prepared and writes the markers again, so a decided end always
happens.
"""

from __future__ import annotations

import logging
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
from moldau.transactions.context import ProducerAnswer, TransactionContext, markers_of
from moldau.transactions.end_txn import EndTxn
from moldau.transactions.init_producer_id import InitProducerId
from moldau.transactions.listing import TransactionFilter
from moldau.transactions.records import from_record, to_record, tombstone
from moldau.transactions.state import KNOWN_STATUS, Transaction

log = logging.getLogger(__name__)

_R = TypeVar("_R")

#: So many ids are forgotten in one batch.
_EXPIRE_AT_ONCE = 500
_FINISH = "finish what is prepared"


class TransactionShard:
    def __init__(self, context: TransactionContext, coordinator_epoch: int, timers: Timers) -> None:
        self._context = context
        self.coordinator_epoch = coordinator_epoch
        self._timers = timers
        self._transactions: dict[str, Transaction] = {}

    # What the node does with any shard.

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
                log.warning("%s has a state that nobody knows: %r", transactional_id, entry.value)

    def activate(self, image: MetadataImage) -> None:
        """What a former coordinator decided and did not finish is finished now."""
        prepared = [each for each in self._transactions.values() if each.is_prepared]
        if prepared:
            markers = [markers_of(each, self.coordinator_epoch) for each in prepared]
            log.info("%d transactions were prepared and are completed now", len(markers))
            self._timers.schedule(_FINISH, 0, lambda: Decision((), None, effects=markers))

    def image_changed(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Nothing here depends on the metadata; where markers go is looked up when they are written."""

    # What producers ask.

    def init_producer_id(self, request: InitProducerId) -> Decision[Entry, ProducerAnswer]:
        found = self._transactions.get(request.transactional_id)
        new_producer_id, now_ms = self._context.new_producer_id, self._now_ms()
        initialized = init_producer_id.initialize(found, request, new_producer_id, now_ms)
        if initialized is None:
            return self._abort_and_fence(self._transactions[request.transactional_id])
        answer = ProducerAnswer(
            producer_id=initialized.producer_id, producer_epoch=initialized.producer_epoch
        )
        return self._store(initialized, answer)

    def add_partitions(
        self,
        transactional_id: str,
        producer: Producer,
        partitions: frozenset[TopicPartition],
        client_version: int,
    ) -> Decision[Entry, None]:
        found = self._transactions.get(_named(transactional_id))
        added = add_partitions.add(found, producer, partitions, client_version, self._now_ms())
        return Decision((), None) if added is None else self._store(added, None)

    def verify_partitions(
        self, transactional_id: str, producer: Producer, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, ErrorCode]:
        found = self._transactions.get(_named(transactional_id))
        return add_partitions.verify(found, producer, partitions)

    def end_transaction(self, request: EndTxn) -> Decision[Entry, ProducerAnswer]:
        found = self._transactions.get(_named(request.transactional_id))
        ended = end_txn.end(found, request, self._context.new_producer_id, self._now_ms())
        told = (found if ended is None else ended.completed(0)) if request.client_version >= 2 else None
        answer = ProducerAnswer()
        if told is not None:
            answer = ProducerAnswer(producer_id=told.producer_id, producer_epoch=told.producer_epoch)
        return Decision((), answer) if ended is None else self._store(ended, answer)

    # What the coordinator does by itself.

    def complete(self, markers: WriteTxnMarkers) -> Decision[Entry, None]:
        """Every partition has its marker."""
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
        log.info("the transaction of %s took longer than %d ms", transactional_id, found.timeout_ms)
        aborted = self._abort_and_fence(found)
        return Decision(aborted.records, None, on_appended=aborted.on_appended, effects=aborted.effects)

    def expire(self) -> Decision[Entry, int]:
        """Forget ids that nobody has used for long; how many. More may be left when it is not 0."""
        now_ms, expiration_ms = self._now_ms(), self._context.settings().id_expiration_ms
        expired = [each for each in self._transactions.values() if each.expired(now_ms, expiration_ms)]
        records = [tombstone(each.transactional_id) for each in expired[:_EXPIRE_AT_ONCE]]
        return Decision(records, len(records))

    # What people ask.

    def describe(self, transactional_id: str) -> Transaction:
        found = self._transactions.get(_named(transactional_id))
        if found is None:
            raise KafkaError(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
        return found

    def list(self, wanted: TransactionFilter) -> list[Transaction]:
        now_ms = self._now_ms()
        return [each for each in self._transactions.values() if wanted.admits(each, now_ms)]

    def _abort_and_fence(self, found: Transaction) -> Decision[Entry, ProducerAnswer]:
        version = self._context.transaction_version()
        aborted = init_producer_id.abort_and_fence(
            found, version, self._context.new_producer_id, self._now_ms()
        )
        return self._store(aborted, ProducerAnswer(ErrorCode.CONCURRENT_TRANSACTIONS))

    def _store(self, transaction: Transaction, response: _R) -> Decision[Entry, _R]:
        def remember() -> None:
            # With what is not stored, for retries.
            self._transactions[transaction.transactional_id] = transaction

        effects = [markers_of(transaction, self.coordinator_epoch)] if transaction.is_prepared else []
        record = to_record(transaction, self._context.transaction_version())
        return Decision([record], response, on_appended=remember, effects=effects)

    def _now_ms(self) -> int:
        return self._context.clock.time_ms()


def _named(transactional_id: str) -> str:
    if not transactional_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    return transactional_id
