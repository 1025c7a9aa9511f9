"""The state of producers in a log: the last batches of each, and the open transactions.

It detects a batch that is sent again (the last five batches of each producer are kept), refuses a gap in the
sequence, and determines the last stable offset. The state is a function of the log: it is checked before a
write (`check`), changed after it (`update`), written to a snapshot at every roll and at shutdown, and
restored from the last snapshot and the batches after it.

Offsets of transactions only grow, so plain dicts keep open transactions in order of their first offset.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import TopicPartition
from moldau.protocol.records import BatchHeader
from moldau.storage.producers.end_marker import EndMarker
from moldau.storage.producers.snapshot import SnapshotEntry
from moldau.storage.producers.verification import NOT_REQUIRED, Guard, Verifications

RETAINED_BATCHES = 5
NO_EPOCH = -1
NO_OFFSET = -1
NO_SEQUENCE = -1
_MAX_SEQUENCE = 2**31 - 1
_MAX_EPOCH = 32767
#: The level of `transaction.version` from which every transaction has its own epoch (KIP-890).
_EPOCH_PER_TRANSACTION = 2


class ProducedBatch(NamedTuple):
    """A batch that may be sent again. Sequences wrap around to 0 after 2^31 - 1."""

    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int

    @property
    def first_sequence(self) -> int:
        return (self.last_sequence - self.offset_delta) & _MAX_SEQUENCE

    @property
    def first_offset(self) -> int:
        return self.last_offset - self.offset_delta


class ProducerEntry:
    """One producer. `transaction_first_offset` is -1 without an open transaction in this log."""

    __slots__ = (
        "batches",
        "coordinator_epoch",
        "epoch",
        "last_timestamp",
        "producer_id",
        "transaction_first_offset",
    )

    def __init__(self, producer_id: int) -> None:
        self.producer_id = producer_id
        self.epoch = NO_EPOCH
        self.coordinator_epoch = -1
        self.last_timestamp = -1
        self.transaction_first_offset = NO_OFFSET
        self.batches: list[ProducedBatch] = []

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    @property
    def last_offset(self) -> int:
        return self.batches[-1].last_offset if self.batches else NO_OFFSET

    def adopt_epoch(self, epoch: int) -> None:
        if epoch != self.epoch:
            self.batches.clear()
            self.epoch = epoch

    def to_snapshot(self) -> SnapshotEntry:
        return SnapshotEntry(
            self.producer_id,
            self.epoch,
            self.last_sequence,
            self.last_offset,
            self.batches[-1].offset_delta if self.batches else 0,
            self.last_timestamp,
            self.coordinator_epoch,
            self.transaction_first_offset,
        )

    @classmethod
    def from_snapshot(cls, stored: SnapshotEntry) -> ProducerEntry:
        entry = cls(stored.producer_id)
        entry.epoch = stored.epoch
        entry.coordinator_epoch = stored.coordinator_epoch
        entry.last_timestamp = stored.timestamp
        entry.transaction_first_offset = max(stored.transaction_first_offset, NO_OFFSET)
        if stored.last_offset >= 0:
            batch = ProducedBatch(
                stored.last_sequence, stored.last_offset, stored.offset_delta, stored.timestamp
            )
            entry.batches.append(batch)
        return entry


class CompletedTransaction(NamedTuple):
    """A transaction whose marker is at `last_offset`."""

    producer_id: int
    first_offset: int
    last_offset: int
    aborted: bool


class ProducerState:
    """`end_offset`: every batch below it is accounted for."""

    __slots__ = (
        "_ongoing",
        "_topic_partition",
        "_unreplicated",
        "end_offset",
        "expiration_ms",
        "producers",
        "verifications",
    )

    def __init__(self, topic_partition: TopicPartition, expiration_ms: int) -> None:
        self._topic_partition = topic_partition
        self.expiration_ms = expiration_ms
        self.producers: dict[int, ProducerEntry] = {}
        #: Open transactions: first offset to producer id.
        self._ongoing: dict[int, int] = {}
        #: Completed transactions whose marker is not below the high watermark yet: first to last offset.
        self._unreplicated: dict[int, int] = {}
        self.end_offset = 0
        self.verifications = Verifications()

    def begin_verification(
        self, producer_id: int, epoch: int, sequence: int, *, epoch_per_transaction: bool, now_ms: int
    ) -> Guard | None:
        """Return the guard that the first batch of a transaction needs; None if the transaction is open."""
        entry = self.producers.get(producer_id)
        if entry is not None and epoch < entry.epoch:
            raise self._epoch_error(producer_id, epoch, entry)
        if entry is not None and _is_open(entry, epoch):
            return None
        return self.verifications.begin(
            producer_id, epoch, sequence, epoch_per_transaction=epoch_per_transaction, now_ms=now_ms
        )

    def check(
        self, header: BatchHeader, *, from_client: bool, guard: Guard | None = NOT_REQUIRED
    ) -> ProducedBatch | None:
        """Refuse a batch that is fenced or out of order; return the stored batch if this one is a duplicate.

        Batches of the coordinators have no sequence; only their epoch is checked.
        """
        entry = self.producers.get(header.producer_id)
        in_sequence = True
        if entry is not None:
            if header.producer_epoch < entry.epoch:
                raise self._epoch_error(header.producer_id, header.producer_epoch, entry)
            in_sequence = not from_client or _follows(entry, header)
            if not in_sequence and (duplicate := _find_duplicate(entry, header)):
                return duplicate
        if header.is_transactional:
            self._check_verified(header, entry, guard, from_client=from_client)
        if entry is None:
            return None
        if not in_sequence:
            self._check_sequence(header, entry)
        if entry.transaction_first_offset != NO_OFFSET and not header.is_transactional:
            raise KafkaError(
                ErrorCode.INVALID_TXN_STATE,
                f"{self._topic_partition}: producer {header.producer_id} has an open transaction, but sends "
                "records outside of it",
            )
        return None

    def check_marker(self, header: BatchHeader, marker: EndMarker, transaction_version: int = 0) -> None:
        """Refuse a marker of a fenced producer or coordinator.

        With an epoch per transaction (KIP-890) a marker has the next epoch, so a marker with the present one
        is late and would end another transaction. If no transaction is open, it was only sent again.
        """
        entry = self.producers.get(header.producer_id)
        if entry is None:
            return
        late = (
            transaction_version >= _EPOCH_PER_TRANSACTION
            and header.producer_epoch == entry.epoch != _MAX_EPOCH
            and entry.transaction_first_offset != NO_OFFSET
        )
        if header.producer_epoch < entry.epoch or late:
            raise self._epoch_error(header.producer_id, header.producer_epoch, entry)
        if marker.coordinator_epoch < entry.coordinator_epoch:
            raise KafkaError(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                f"{self._topic_partition}: obsolete coordinator epoch {marker.coordinator_epoch} of a marker "
                f"for producer {header.producer_id}, the last seen epoch is {entry.coordinator_epoch}",
            )

    def update(self, header: BatchHeader, base_offset: int) -> None:
        """Account for a data batch that was written at `base_offset`."""
        entry = self._entry(header.producer_id)
        entry.adopt_epoch(header.producer_epoch)
        delta = header.last_offset_delta
        batches = entry.batches
        if len(batches) == RETAINED_BATCHES:
            del batches[0]
        batch = ProducedBatch(header.last_sequence, base_offset + delta, delta, header.max_timestamp)
        batches.append(batch)
        entry.last_timestamp = header.max_timestamp
        if header.is_transactional:
            self.verifications.wrote(header)
            if entry.transaction_first_offset == NO_OFFSET:
                entry.transaction_first_offset = base_offset
                self._ongoing[base_offset] = header.producer_id

    def update_marker(
        self, header: BatchHeader, marker: EndMarker, offset: int
    ) -> CompletedTransaction | None:
        """Account for a marker that was written; return the transaction it completes, if one was open.

        The caller calls `stable_offset_after` with the result, and then `complete`.
        """
        entry = self._entry(header.producer_id)
        entry.adopt_epoch(header.producer_epoch)
        entry.coordinator_epoch = marker.coordinator_epoch
        entry.last_timestamp = header.max_timestamp
        self.verifications.wrote(header)
        first, entry.transaction_first_offset = entry.transaction_first_offset, NO_OFFSET
        if first == NO_OFFSET:
            return None
        return CompletedTransaction(header.producer_id, first, offset, marker.aborted)

    def stable_offset_after(self, completed: CompletedTransaction) -> int:
        """The last stable offset once this transaction is complete."""
        for first_offset, producer_id in self._ongoing.items():
            if producer_id != completed.producer_id:
                return first_offset
        return completed.last_offset + 1

    def complete(self, completed: CompletedTransaction) -> None:
        self._ongoing.pop(completed.first_offset, None)
        self._unreplicated[completed.first_offset] = completed.last_offset

    def first_unstable_offset(self) -> int | None:
        """The first offset of the oldest transaction that is open or completed above the high watermark."""
        if not self._ongoing and not self._unreplicated:
            return None
        ongoing = next(iter(self._ongoing), None)
        unreplicated = min(self._unreplicated, default=None)
        if ongoing is None or unreplicated is None:
            return unreplicated if ongoing is None else ongoing
        return min(ongoing, unreplicated)

    def forget_replicated(self, offset: int) -> bool:
        """Forget transactions whose marker is below the high watermark `offset`; return whether any was."""
        done = [first for first, last in self._unreplicated.items() if last < offset]
        for first in done:
            del self._unreplicated[first]
        return bool(done)

    def remove_expired(self, now_ms: int) -> None:
        """Forget producers that were idle for `producer.id.expiration.ms`."""
        for producer_id, entry in list(self.producers.items()):
            if self._expired(entry, now_ms):
                del self.producers[producer_id]
        self.verifications.remove_expired(now_ms, self.expiration_ms)

    def last_records(self) -> dict[int, tuple[int | None, int]]:
        """Return each producer's last data offset (None: none) and epoch, which compaction must retain."""
        return {
            producer_id: (entry.last_offset if entry.batches else None, entry.epoch)
            for producer_id, entry in self.producers.items()
        }

    def clear(self, end_offset: int) -> None:
        self.producers.clear()
        self._ongoing.clear()
        self._unreplicated.clear()
        self.end_offset = end_offset

    def to_snapshot(self) -> list[SnapshotEntry]:
        return [entry.to_snapshot() for entry in self.producers.values()]

    def restore(self, stored: Iterable[SnapshotEntry], end_offset: int, now_ms: int) -> None:
        """Replace the state by a snapshot."""
        self.clear(end_offset)
        for item in stored:
            entry = ProducerEntry.from_snapshot(item)
            if not self._expired(entry, now_ms):
                self.producers[entry.producer_id] = entry
        started = (entry for entry in self.producers.values() if entry.transaction_first_offset != NO_OFFSET)
        for entry in sorted(started, key=lambda entry: entry.transaction_first_offset):
            self._ongoing[entry.transaction_first_offset] = entry.producer_id

    def _entry(self, producer_id: int) -> ProducerEntry:
        entry = self.producers.get(producer_id)
        if entry is None:
            entry = self.producers[producer_id] = ProducerEntry(producer_id)
        return entry

    def _expired(self, entry: ProducerEntry, now_ms: int) -> bool:
        return (
            entry.transaction_first_offset == NO_OFFSET
            and now_ms - entry.last_timestamp >= self.expiration_ms
        )

    def _check_verified(
        self, header: BatchHeader, entry: ProducerEntry | None, guard: Guard | None, *, from_client: bool
    ) -> None:
        """Refuse a batch of an unverified transaction, and one that overtakes a batch being verified."""
        found = self.verifications.get(header.producer_id)
        is_open = entry is not None and _is_open(entry, header.producer_epoch)
        verified = guard is NOT_REQUIRED or (found is not None and guard is found.guard)
        if not is_open and not verified:
            raise KafkaError(
                ErrorCode.INVALID_TXN_STATE,
                f"{self._topic_partition}: producer {header.producer_id} has no open transaction here",
            )
        if found is None or not from_client:
            return
        unknown = entry is None or not entry.batches
        first = header.base_sequence
        if first > found.lowest_sequence or (found.epoch_per_transaction and unknown and first != 0):
            raise KafkaError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"{self._topic_partition}: producer {header.producer_id} begins a transaction with sequence "
                f"{first}",
            )

    def _check_sequence(self, header: BatchHeader, entry: ProducerEntry) -> None:
        first = header.base_sequence
        if header.producer_epoch != entry.epoch:
            if first != 0 and entry.epoch != NO_EPOCH:
                raise KafkaError(
                    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                    f"{self._topic_partition}: producer {header.producer_id} begins epoch "
                    f"{header.producer_epoch} (after {entry.epoch}) with sequence {first}, not 0",
                )
        elif first != (entry.last_sequence + 1) & _MAX_SEQUENCE:
            raise KafkaError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"{self._topic_partition}: out of order sequence {first} of producer {header.producer_id}, "
                f"the last one is {entry.last_sequence}",
            )

    def _epoch_error(self, producer_id: int, epoch: int, entry: ProducerEntry) -> KafkaError:
        return KafkaError(
            ErrorCode.INVALID_PRODUCER_EPOCH,
            f"{self._topic_partition}: obsolete epoch {epoch} of producer {producer_id}, the last seen "
            f"epoch is {entry.epoch}",
        )


def _follows(entry: ProducerEntry, header: BatchHeader) -> bool:
    """Whether a batch has the next sequence in the same epoch, the usual case."""
    batches = entry.batches
    return (
        bool(batches)
        and header.base_sequence == (batches[-1].last_sequence + 1) & _MAX_SEQUENCE
        and header.producer_epoch == entry.epoch
    )


def _is_open(entry: ProducerEntry, epoch: int) -> bool:
    return entry.transaction_first_offset != NO_OFFSET and entry.epoch == epoch


def _find_duplicate(entry: ProducerEntry, header: BatchHeader) -> ProducedBatch | None:
    if header.producer_epoch != entry.epoch:
        return None
    for batch in entry.batches:
        if batch.offset_delta == header.last_offset_delta and batch.first_sequence == header.base_sequence:
            return batch
    return None
