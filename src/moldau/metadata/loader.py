"""From committed records to published images.

Records between a BeginTransactionRecord and its EndTransactionRecord become visible together; an
AbortTransactionRecord drops them. A transaction may span batches, and a log may end inside one, when its
controller died: then the image stays where it was before the transaction.
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
    """Feeds batches of records into one delta; `publish` closes it and gives the image so far.

    Without `publish` in between, a whole log is replayed into a single delta: maps are copied once.
    """

    def __init__(self, image: MetadataImage | None = None) -> None:
        #: What has been published.
        self.image = image or MetadataImage.empty()
        self._delta = MetadataDelta(self.image)
        self._offset = self.image.offset
        self._epoch = self.image.epoch
        #: Where the transaction began that has not ended yet, and its records so far.
        self.transaction_start: int | None = None
        self._held_back: list[MetadataRecord] = []

    def replay(self, records: Sequence[MetadataRecord], base_offset: int, epoch: int) -> None:
        """Take the records of one batch; the last of them has offset `base_offset + len(records) - 1`."""
        for offset, record in enumerate(records, base_offset):
            kind = type(record)
            if kind is BeginTransactionRecord:
                self._begin(offset)
            elif kind is EndTransactionRecord:
                self._delta.replay_all(self._finish(offset, "ends"))
            elif kind is AbortTransactionRecord:
                self._finish(offset, "is aborted")
            elif self.transaction_start is not None:
                self._held_back.append(record)
            else:
                self._delta.replay(record)
        self.advance(base_offset + len(records) - 1, epoch)

    def restore(self, records: Iterable[MetadataRecord], offset: int, epoch: int) -> None:
        """Begin with the records of a snapshot that reaches up to `offset`."""
        self._delta.replay_all(records)
        self._offset, self._epoch = offset, epoch

    def advance(self, offset: int, epoch: int) -> None:
        """The log reaches up to `offset`; inside a transaction the image stays before its beginning."""
        self._offset = offset if self.transaction_start is None else self.transaction_start - 1
        self._epoch = epoch

    def publish(self) -> tuple[MetadataDelta, MetadataImage]:
        """Close the delta: what changed since the last time, and the image with it."""
        delta = self._delta
        self.image = delta.apply(self._offset, self._epoch)
        self._delta = MetadataDelta(self.image)
        return delta, self.image

    def _begin(self, offset: int) -> None:
        if self.transaction_start is not None:
            raise InconsistentMetadata(f"a metadata transaction begins at offset {offset} inside another one")
        self.transaction_start = offset

    def _finish(self, offset: int, event: str) -> list[MetadataRecord]:
        if self.transaction_start is None:
            raise InconsistentMetadata(f"a metadata transaction {event} at offset {offset} but none began")
        records, self._held_back = self._held_back, []
        self.transaction_start = None
        return records
