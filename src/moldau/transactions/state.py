"""One transactional id: its producer, its current transaction, and the table of its state transitions.

A `Transaction` is immutable: each step returns a new one, which is stored and then replaces the old one. No
producer gets the epoch 32767, so a higher epoch to fence it with always exists: a producer with epoch 32766
gets a new producer id next.

Only fields that Kafka stores survive a change of coordinator. `last_producer_epoch` does not, and
`previous_producer_id` only with `transaction.version` 1 or higher; both serve retries after lost responses.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum, IntEnum

from moldau.base.ids import TopicPartition
from moldau.statemachine.transitions import TransitionTable

NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
MAX_EPOCH = 32767
#: The timeout of two-phase commit transactions (KIP-939): they never time out.
NO_TIMEOUT_MS = 2**31 - 1
#: The level of `transaction.version` from which every transaction has its own epoch (KIP-890).
EPOCH_PER_TRANSACTION = 2


class TransactionStatus(IntEnum):
    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    @property
    def title(self) -> str:
        """The name in ListTransactions and DescribeTransactions."""
        return "".join(word.capitalize() for word in self.name.split("_"))


KNOWN_STATUS = frozenset(TransactionStatus)
BY_TITLE = {status.title: status for status in TransactionStatus}


class TransactionEvent(Enum):
    INIT_PRODUCER_ID = "InitProducerId"
    ADD_PARTITIONS = "AddPartitionsToTxn"
    COMMIT = "EndTxn(commit)"
    #: EndTxn, a timeout, or a new producer with the same transactional id.
    ABORT = "EndTxn(abort)"
    MARKERS_WRITTEN = "WriteTxnMarkers"


_STATUS = TransactionStatus
_EVENT = TransactionEvent
_WITHOUT_TRANSACTION = {
    _EVENT.INIT_PRODUCER_ID: _STATUS.EMPTY,
    _EVENT.ADD_PARTITIONS: _STATUS.ONGOING,
    # A producer with an epoch per transaction may not know whether its transaction has started.
    _EVENT.ABORT: _STATUS.PREPARE_ABORT,
}

#: DEAD and PREPARE_EPOCH_FENCE are Kafka's; records with them are read, but no step leads there.
TRANSACTION_TRANSITIONS: TransitionTable[TransactionStatus, TransactionEvent] = TransitionTable(
    {
        _STATUS.EMPTY: _WITHOUT_TRANSACTION,
        _STATUS.ONGOING: {
            _EVENT.ADD_PARTITIONS: _STATUS.ONGOING,
            _EVENT.COMMIT: _STATUS.PREPARE_COMMIT,
            _EVENT.ABORT: _STATUS.PREPARE_ABORT,
        },
        _STATUS.PREPARE_COMMIT: {_EVENT.MARKERS_WRITTEN: _STATUS.COMPLETE_COMMIT},
        _STATUS.PREPARE_ABORT: {_EVENT.MARKERS_WRITTEN: _STATUS.COMPLETE_ABORT},
        _STATUS.COMPLETE_COMMIT: _WITHOUT_TRANSACTION,
        _STATUS.COMPLETE_ABORT: _WITHOUT_TRANSACTION,
        _STATUS.DEAD: _WITHOUT_TRANSACTION,
        _STATUS.PREPARE_EPOCH_FENCE: _WITHOUT_TRANSACTION,
    }
)
_PREPARED = frozenset({TransactionStatus.PREPARE_COMMIT, TransactionStatus.PREPARE_ABORT})


@dataclass(frozen=True, slots=True)
class Transaction:
    transactional_id: str
    producer_id: int
    timeout_ms: int
    updated_ms: int
    producer_epoch: int = NO_PRODUCER_EPOCH
    status: TransactionStatus = TransactionStatus.EMPTY
    partitions: frozenset[TopicPartition] = frozenset()
    started_ms: int = -1
    #: The producer id before the last transition.
    previous_producer_id: int = NO_PRODUCER_ID
    #: The producer id after the current transaction; -1 keeps the current one.
    next_producer_id: int = NO_PRODUCER_ID
    last_producer_epoch: int = NO_PRODUCER_EPOCH
    #: The `transaction.version` of the client that requested the last transition.
    client_version: int = 0

    @property
    def is_prepared(self) -> bool:
        """Whether its end is decided but not every partition has its marker."""
        return self.status in _PREPARED

    @property
    def is_ongoing(self) -> bool:
        return self.status is TransactionStatus.ONGOING

    @property
    def epoch_exhausted(self) -> bool:
        return epoch_exhausted(self.producer_epoch)

    def timed_out(self, now_ms: int) -> bool:
        limited = self.timeout_ms != NO_TIMEOUT_MS
        return self.is_ongoing and limited and self.started_ms + self.timeout_ms < now_ms

    def expired(self, now_ms: int, expiration_ms: int) -> bool:
        """Return whether the id has no transaction and was not used for `expiration_ms`."""
        return not self.is_ongoing and not self.is_prepared and self.updated_ms <= now_ms - expiration_ms

    # Transitions.

    def initialized(self, epoch: int, last_epoch: int, timeout_ms: int, now_ms: int) -> Transaction:
        """Start a producer, or restart it after an error."""
        return replace(
            self._emptied(timeout_ms, now_ms), producer_epoch=epoch, last_producer_epoch=last_epoch
        )

    def rotated(self, producer_id: int, last_epoch: int, timeout_ms: int, now_ms: int) -> Transaction:
        """Start a producer with a new producer id, because the epochs of the old one are exhausted."""
        return replace(
            self._emptied(timeout_ms, now_ms),
            producer_id=producer_id,
            producer_epoch=0,
            last_producer_epoch=last_epoch,
        )

    def with_partitions(
        self, partitions: frozenset[TopicPartition], client_version: int, now_ms: int
    ) -> Transaction:
        """Add partitions; the first ones start the transaction."""
        return replace(
            self,
            status=self._after(TransactionEvent.ADD_PARTITIONS),
            partitions=self.partitions | partitions,
            started_ms=self.started_ms if self.is_ongoing else now_ms,
            updated_ms=now_ms,
            client_version=client_version,
            previous_producer_id=self.producer_id,
        )

    def prepared(
        self, *, committed: bool, client_version: int, next_producer_id: int, now_ms: int
    ) -> Transaction:
        """Decide the end; with an epoch per transaction, the producer gets its next epoch here.

        If no transaction is ongoing, only an abort is possible, and the transaction starts now.
        """
        bumped, last = self.producer_epoch, self.last_producer_epoch
        if client_version >= EPOCH_PER_TRANSACTION:
            bumped, last = min(self.producer_epoch + 1, MAX_EPOCH), self.producer_epoch
        return replace(
            self,
            status=self._after(TransactionEvent.COMMIT if committed else TransactionEvent.ABORT),
            producer_epoch=bumped,
            last_producer_epoch=last,
            next_producer_id=next_producer_id,
            started_ms=self.started_ms if self.is_ongoing else now_ms,
            updated_ms=now_ms,
            client_version=client_version,
            previous_producer_id=self.producer_id,
        )

    def fenced(self) -> Transaction:
        """Raise the epoch to one that no producer uses; an intermediate step of an abort, never stored."""
        return replace(
            self,
            producer_epoch=min(self.producer_epoch + 1, MAX_EPOCH),
            last_producer_epoch=NO_PRODUCER_EPOCH,
        )

    def completed(self, now_ms: int) -> Transaction:
        """Complete the transaction: every partition has its marker."""
        rotates = self.client_version >= EPOCH_PER_TRANSACTION and self.next_producer_id != NO_PRODUCER_ID
        return replace(
            self,
            status=self._after(TransactionEvent.MARKERS_WRITTEN),
            producer_id=self.next_producer_id if rotates else self.producer_id,
            producer_epoch=0 if rotates else self.producer_epoch,
            previous_producer_id=self.producer_id,
            next_producer_id=NO_PRODUCER_ID,
            partitions=frozenset(),
            updated_ms=now_ms,
        )

    def _after(self, event: TransactionEvent) -> TransactionStatus:
        return TRANSACTION_TRANSITIONS.after(self.status, event)

    def _emptied(self, timeout_ms: int, now_ms: int) -> Transaction:
        return replace(
            self,
            status=self._after(TransactionEvent.INIT_PRODUCER_ID),
            partitions=frozenset(),
            started_ms=-1,
            timeout_ms=timeout_ms,
            updated_ms=now_ms,
            previous_producer_id=self.producer_id,
        )


def epoch_exhausted(epoch: int) -> bool:
    return epoch >= MAX_EPOCH - 1
