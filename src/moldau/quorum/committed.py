"""Committed metadata: replays records below the high watermark into the image and publishes it.

Records that are appended while the node runs are kept here, decoded, until they are committed. Records that
were in the log at the start are read from it. The image is published to listeners synchronously, in order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

from moldau.base.pool import Pool
from moldau.metadata.delta import MetadataDelta
from moldau.metadata.errors import InconsistentMetadata
from moldau.metadata.image import MetadataImage
from moldau.metadata.loader import MetadataLoader
from moldau.metadata.records import MetadataRecord
from moldau.protocol.errors import CorruptBatch, DecodeError
from moldau.quorum.batches import Batch
from moldau.quorum.errors import UnusableMetadata
from moldau.quorum.metadata_log import MetadataLog

OnImage = Callable[[MetadataDelta, MetadataImage], None]


class UncommittedRecords(NamedTuple):
    """A run of appended records that is not known to be committed. Of control records, only the offsets are
    kept."""

    base_offset: int
    end_offset: int
    records: Sequence[MetadataRecord]
    epoch: int
    timestamp: int
    size: int

    @classmethod
    def from_batch(cls, batch: Batch) -> UncommittedRecords:
        header = batch.header
        return cls(
            header.base_offset,
            header.next_offset,
            batch.records,
            header.partition_leader_epoch,
            header.max_timestamp,
            header.size_in_bytes,
        )

    def before(self, offset: int) -> UncommittedRecords:
        """Return the records before `offset`."""
        return self._replace(end_offset=offset, records=self.records[: offset - self.base_offset])


class CommittedMetadata:
    def __init__(
        self,
        log: MetadataLog,
        pool: Pool,
        loader: MetadataLoader,
        end_offset: int,
        listeners: Sequence[OnImage] = (),
    ) -> None:
        #: The first offset that is not in the image.
        self.end_offset = end_offset
        #: The timestamp of the last record in the image.
        self.timestamp = log.last_timestamp
        self._listeners = listeners
        self._log = log
        self._pool = pool
        self._loader = loader
        self._uncommitted: deque[UncommittedRecords] = deque()

    @property
    def image(self) -> MetadataImage:
        return self._loader.image

    @property
    def in_transaction(self) -> bool:
        """Whether the controller's latest metadata transaction (KIP-868) is still open."""
        return self._loader.transaction_start is not None

    def append(self, records: UncommittedRecords) -> None:
        self._uncommitted.append(records)

    def truncate(self, offset: int) -> None:
        """Drop the records from `offset` on. It may be inside a run, because a leader writes several batches
        at once and the new leader may have only the first ones."""
        while self._uncommitted and self._uncommitted[-1].end_offset > offset:
            last = self._uncommitted.pop()
            if last.base_offset < offset:
                self._uncommitted.append(last.before(offset))

    async def advance(self, high_watermark: int) -> int:
        """Replay and publish the records below the high watermark; return the number of bytes committed."""
        size = 0
        try:
            while self._uncommitted and self._uncommitted[0].base_offset <= self.end_offset < high_watermark:
                size += self._replay(self._uncommitted[0], high_watermark)
                if self._uncommitted[0].end_offset <= self.end_offset:
                    self._uncommitted.popleft()
            if self.end_offset < high_watermark:
                size += await self._pool.run(self._replay_log, high_watermark)
                while self._uncommitted and self._uncommitted[0].end_offset <= self.end_offset:
                    self._uncommitted.popleft()
        except (CorruptBatch, DecodeError, InconsistentMetadata) as error:
            raise UnusableMetadata(
                f"The metadata log in {self._log.log.directory} cannot be read: {error}."
            ) from error
        self._log.set_high_watermark(high_watermark)
        self.publish()
        return size

    def _replay_log(self, high_watermark: int) -> int:
        size = 0
        for batch in self._log.batches(self.end_offset, high_watermark):
            size += self._replay(UncommittedRecords.from_batch(batch), high_watermark)
        return size

    def _replay(self, run: UncommittedRecords, high_watermark: int) -> int:
        """Replay the new, committed records of a run; a snapshot or the high watermark may end inside it."""
        first = max(self.end_offset, run.base_offset)
        end = min(high_watermark, run.end_offset)
        if run.records:
            records = run.records[first - run.base_offset : end - run.base_offset]
            self._loader.replay(records, first, run.epoch)
        else:
            self._loader.advance(end - 1, run.epoch)
        self.end_offset = end
        self.timestamp = max(self.timestamp, run.timestamp)
        return run.size

    def publish(self) -> None:
        delta, image = self._loader.publish()
        self._notify(delta, image)

    def restore(self, loader: MetadataLoader, end_offset: int, timestamp: int) -> None:
        """Replace the image by that of a snapshot from the leader."""
        before = self.image
        _, image = loader.publish()
        self._loader = loader
        self._uncommitted.clear()
        self.end_offset, self.timestamp = end_offset, timestamp
        self._log.set_high_watermark(end_offset)
        self._notify(MetadataDelta.between(before, image), image)

    def _notify(self, delta: MetadataDelta, image: MetadataImage) -> None:
        for on_image in self._listeners:
            on_image(delta, image)
