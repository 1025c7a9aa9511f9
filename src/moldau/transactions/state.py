"""One transactional id: its producer, its present transaction, and the steps between its states.

A `Transaction` never changes; each step gives a new one, which is stored and then takes its place. A producer
epoch of 32767 is never given to a producer, so that there is always a higher one to fence it with: a producer
at 32766 gets a new producer id next.

Only what Kafka stores survives the coordinator; `last_producer_epoch` does not, and `previous_producer_id`
only with `transaction.version` 1 and above. Both serve retries of requests whose answer was lost.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum

from moldau.base.ids import TopicPartition

NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
MAX_EPOCH = 32767
#: A transaction with this timeout belongs to a two-phase commit and never times out.
NO_TIMEOUT_MS = 2**31 - 1
#: The level of `transaction.version` since which every transaction has an epoch of its own.
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
        """The name people see."""
        return "".join(word.capitalize() for word in self.name.split("_"))


KNOWN_STATUS = frozenset(TransactionStatus)
BY_TITLE = {status.title: status for status in TransactionStatus}
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
    #: The producer id before the last step.
    previous_producer_id: int = NO_PRODUCER_ID
    #: The one its producer gets once the present transaction has ended; -1 keeps the present one.
    next_producer_id: int = NO_PRODUCER_ID
    last_producer_epoch: int = NO_PRODUCER_EPOCH
    #: The `transaction.version` of the client that took the last step.
    client_version: int = 0

    @property
    def is_prepared(self) -> bool:
        """It is decided how it ends, and not every partition has heard yet."""
        return self.status in _PREPARED

    @property
    def is_open(self) -> bool:
        return self.status is TransactionStatus.ONGOING

    @property
    def epoch_exhausted(self) -> bool:
        return epoch_exhausted(self.producer_epoch)

    def timed_out(self, now_ms: int) -> bool:
        limited = self.timeout_ms != NO_TIMEOUT_MS
        return self.is_open and limited and self.started_ms + self.timeout_ms < now_ms

    def expired(self, now_ms: int, expiration_ms: int) -> bool:
        """Nobody has used the id for long, and nothing hangs on it."""
        return not self.is_open and not self.is_prepared and self.updated_ms <= now_ms - expiration_ms

    # The steps.

    def initialized(self, epoch: int, last_epoch: int, timeout_ms: int, now_ms: int) -> Transaction:
        """A producer begins with this id, or begins again after an error."""
        return replace(
            self._emptied(timeout_ms, now_ms), producer_epoch=epoch, last_producer_epoch=last_epoch
        )

    def rotated(self, producer_id: int, last_epoch: int, timeout_ms: int, now_ms: int) -> Transaction:
        """The same with a new producer id, because the epochs of the old one are used up."""
        return replace(
            self._emptied(timeout_ms, now_ms),
            producer_id=producer_id,
            producer_epoch=0,
            last_producer_epoch=last_epoch,
        )

    def with_partitions(
        self, partitions: frozenset[TopicPartition], client_version: int, now_ms: int
    ) -> Transaction:
        """The transaction writes to these partitions too; the first ones begin it."""
        return replace(
            self,
            status=TransactionStatus.ONGOING,
            partitions=self.partitions | partitions,
            started_ms=self.started_ms if self.is_open else now_ms,
            updated_ms=now_ms,
            client_version=client_version,
            previous_producer_id=self.producer_id,
        )

    def prepared(
        self, *, committed: bool, client_version: int, next_producer_id: int, now_ms: int
    ) -> Transaction:
        """How it ends is decided; with an epoch per transaction, the producer's next one begins here.

        Without a transaction (only an abort is possible then) it counts as begun just now.
        """
        bumped, last = self.producer_epoch, self.last_producer_epoch
        if client_version >= EPOCH_PER_TRANSACTION:
            bumped, last = min(self.producer_epoch + 1, MAX_EPOCH), self.producer_epoch
        return replace(
            self,
            status=TransactionStatus.PREPARE_COMMIT if committed else TransactionStatus.PREPARE_ABORT,
            producer_epoch=bumped,
            last_producer_epoch=last,
            next_producer_id=next_producer_id,
            started_ms=self.started_ms if self.is_open else now_ms,
            updated_ms=now_ms,
            client_version=client_version,
            previous_producer_id=self.producer_id,
        )

    def fenced(self) -> Transaction:
        """Not stored by itself: the epoch no producer was given, for an abort that shuts one out."""
        return replace(
            self,
            producer_epoch=min(self.producer_epoch + 1, MAX_EPOCH),
            last_producer_epoch=NO_PRODUCER_EPOCH,
        )

    def completed(self, now_ms: int) -> Transaction:
        """Every partition has its marker."""
        committed = self.status is TransactionStatus.PREPARE_COMMIT
        rotates = self.client_version >= EPOCH_PER_TRANSACTION and self.next_producer_id != NO_PRODUCER_ID
        return replace(
            self,
            status=TransactionStatus.COMPLETE_COMMIT if committed else TransactionStatus.COMPLETE_ABORT,
            producer_id=self.next_producer_id if rotates else self.producer_id,
            producer_epoch=0 if rotates else self.producer_epoch,
            previous_producer_id=self.producer_id,
            next_producer_id=NO_PRODUCER_ID,
            partitions=frozenset(),
            updated_ms=now_ms,
        )

    def _emptied(self, timeout_ms: int, now_ms: int) -> Transaction:
        return replace(
            self,
            status=TransactionStatus.EMPTY,
            partitions=frozenset(),
            started_ms=-1,
            timeout_ms=timeout_ms,
            updated_ms=now_ms,
            previous_producer_id=self.producer_id,
        )


def epoch_exhausted(epoch: int) -> bool:
    return epoch >= MAX_EPOCH - 1
