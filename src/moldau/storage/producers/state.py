"""What a log knows of its producers: the last batches of each, and which transactions are open.

With it a batch sent again is recognised (the last five of each producer are remembered), a gap in the
sequence is refused, and consumers that read only committed records know where to stop. The state is a
function of the log: it is checked before a write (`check`), changed after it (`update`), saved at every roll
and at shutdown (`take_snapshot`), and after a crash rebuilt from the last snapshot and the batches behind it.

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
#: The level of `transaction.version` since which a marker has a higher epoch than what it ends.
_EPOCH_PER_TRANSACTION = 2


class ProducedBatch(NamedTuple):
    """A remembered batch. Sequences count from 0 to 2^31 - 1 and then start again."""

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
    """One producer. `transaction_first_offset` is -1 while it has no open transaction here."""

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
    """A transaction whose marker lies at `last_offset`."""

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
        #: Ended ones whose marker is not below the high watermark yet: first to last offset.
        self._unreplicated: dict[int, int] = {}
        self.end_offset = 0
        self.verifications = Verifications()

    def begin_verification(
        self, producer_id: int, epoch: int, sequence: int, *, epoch_per_transaction: bool, now_ms: int
    ) -> Guard | None:
        """What a first batch of a transaction needs to be written; None when the transaction is open here."""
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
        """Refuse a batch that does not follow, before it is written; a known one sent again is given back.

        Batches of the coordinators carry no sequence; only their epoch is checked.
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
                f"{self._topic_partition}: producer {header.producer_id} has an open transaction and sends "
                "records outside it",
            )
        return None

    def check_marker(self, header: BatchHeader, marker: EndMarker, transaction_version: int = 0) -> None:
        """Refuse a marker of a producer or coordinator that was replaced.

        With an epoch per transaction the marker has the next one, so one with the present epoch comes late:
        it would end another transaction. When none is open it was only sent again.
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
                f"{self._topic_partition}: a coordinator of epoch {marker.coordinator_epoch} ends a "
                f"transaction of producer {header.producer_id}, one of epoch {entry.coordinator_epoch} "
                "was here",
            )

    def update(self, header: BatchHeader, base_offset: int) -> None:
        """A batch of data was written at `base_offset`."""
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
        """A marker was written. None when the producer had written nothing here that it could end.

        The caller then passes the result to `complete`, after it has asked for `stable_offset_after`.
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
        """How far everything is decided once this transaction is."""
        for first_offset, producer_id in self._ongoing.items():
            if producer_id != completed.producer_id:
                return first_offset
        return completed.last_offset + 1

    def complete(self, completed: CompletedTransaction) -> None:
        self._ongoing.pop(completed.first_offset, None)
        self._unreplicated[completed.first_offset] = completed.last_offset

    def first_unstable_offset(self) -> int | None:
        """Where the oldest transaction begins that is open, or ended above the high watermark."""
        if not self._ongoing and not self._unreplicated:
            return None
        ongoing = next(iter(self._ongoing), None)
        unreplicated = min(self._unreplicated, default=None)
        if ongoing is None or unreplicated is None:
            return unreplicated if ongoing is None else ongoing
        return min(ongoing, unreplicated)

    def forget_replicated(self, offset: int) -> bool:
        """Markers below `offset` are settled (the high watermark is there); did that change anything?"""
        done = [first for first, last in self._unreplicated.items() if last < offset]
        for first in done:
            del self._unreplicated[first]
        return bool(done)

    def remove_expired(self, now_ms: int) -> None:
        """Forget producers that wrote nothing for `producer.id.expiration.ms`."""
        for producer_id, entry in list(self.producers.items()):
            if self._expired(entry, now_ms):
                del self.producers[producer_id]
        self.verifications.remove_expired(now_ms, self.expiration_ms)

    def last_records(self) -> dict[int, tuple[int | None, int]]:
        """What compaction must keep of each producer: its last data offset (None: it has none) and epoch."""
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
        """Begin again from a snapshot."""
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
        """The coordinator knows of this transaction, and nothing that was refused for now is overtaken."""
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
                    f"{header.producer_epoch} (after {entry.epoch}) with sequence {first} instead of 0",
                )
        elif first != (entry.last_sequence + 1) & _MAX_SEQUENCE:
            raise KafkaError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"{self._topic_partition}: producer {header.producer_id} sends sequence {first} after "
                f"{entry.last_sequence}",
            )

    def _epoch_error(self, producer_id: int, epoch: int, entry: ProducerEntry) -> KafkaError:
        return KafkaError(
            ErrorCode.INVALID_PRODUCER_EPOCH,
            f"{self._topic_partition}: producer {producer_id} has epoch {epoch}, one with epoch "
            f"{entry.epoch} was here",
        )


def _follows(entry: ProducerEntry, header: BatchHeader) -> bool:
    """The usual case: the next sequence in the same epoch."""
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
