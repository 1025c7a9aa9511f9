"""Loads committed records into images.

Records between a BeginTransactionRecord and its EndTransactionRecord become visible together; an
AbortTransactionRecord discards them (KIP-868). A transaction may span batches. If the log ends inside one,
because its controller failed, the image remains at the offset before the transaction.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from moldau.metadata.delta import MetadataDelta
from moldau.metadata.errors import InconsistentMetadata
from moldau.metadata.image import MetadataImage
from moldau.metadata.records import MetadataRecord
from moldau.protocol.stored.metadata import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
)


class MetadataLoader:
    """Replays batches of records into a delta; `publish` closes it and makes the next image.

    Between two calls of `publish` all records go into one delta, so that maps are copied once.
    """

    def __init__(self, image: MetadataImage | None = None) -> None:
        #: The latest published image.
        self.image = image or MetadataImage.empty()
        self._delta = MetadataDelta(self.image)
        self._offset = self.image.offset
        self._epoch = self.image.epoch
        #: The offset at which the open transaction began, and its records so far.
        self.transaction_start: int | None = None
        self._transaction_records: list[MetadataRecord] = []

    def replay(self, records: Sequence[MetadataRecord], base_offset: int, epoch: int) -> None:
        """Replay the records of one batch; the last has the offset `base_offset + len(records) - 1`."""
        for offset, record in enumerate(records, base_offset):
            kind = type(record)
            if kind is BeginTransactionRecord:
                self._begin(offset)
            elif kind is EndTransactionRecord:
                self._delta.replay_all(self._finish(offset, "ends"))
            elif kind is AbortTransactionRecord:
                self._finish(offset, "is aborted")
            elif self.transaction_start is not None:
                self._transaction_records.append(record)
            else:
                self._delta.replay(record)
        self.advance(base_offset + len(records) - 1, epoch)

    def restore(self, records: Iterable[MetadataRecord], offset: int, epoch: int) -> None:
        """Replay the records of a snapshot whose last contained offset is `offset`."""
        self._delta.replay_all(records)
        self._offset, self._epoch = offset, epoch

    def advance(self, offset: int, epoch: int) -> None:
        """Advance the image to `offset`; within a transaction it remains before its first record."""
        self._offset = offset if self.transaction_start is None else self.transaction_start - 1
        self._epoch = epoch

    def publish(self) -> tuple[MetadataDelta, MetadataImage]:
        """Close the delta; return it and the new image."""
        delta = self._delta
        self.image = delta.apply(self._offset, self._epoch)
        self._delta = MetadataDelta(self.image)
        return delta, self.image

    def _begin(self, offset: int) -> None:
        if self.transaction_start is not None:
            raise InconsistentMetadata(f"a metadata transaction begins at offset {offset} within another one")
        self.transaction_start = offset

    def _finish(self, offset: int, event: str) -> list[MetadataRecord]:
        if self.transaction_start is None:
            raise InconsistentMetadata(
                f"a metadata transaction {event} at offset {offset}, but none has begun"
            )
        records, self._transaction_records = self._transaction_records, []
        self.transaction_start = None
        return records
