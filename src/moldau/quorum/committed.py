"""What is committed, and how it becomes known: the image follows the high watermark.

Batches that were appended while the node runs wait here, already read, until they are committed; those that
were found in the log at the start are read from there. The image is published to the listeners synchronously
and in order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

from moldau.base.pool import Pool
from moldau.metadata.delta import MetadataDelta
from moldau.metadata.difference import difference
from moldau.metadata.errors import InconsistentMetadata
from moldau.metadata.image import MetadataImage
from moldau.metadata.loader import MetadataLoader
from moldau.metadata.records import MetadataRecord
from moldau.protocol.errors import CorruptBatch, DecodeError
from moldau.quorum.batches import Batch
from moldau.quorum.errors import UnusableMetadata
from moldau.quorum.metadata_log import MetadataLog

OnImage = Callable[[MetadataDelta, MetadataImage], None]


class Waiting(NamedTuple):
    """Records that follow one another, not known to be committed; control records count and are not kept."""

    base_offset: int
    end_offset: int
    records: Sequence[MetadataRecord]
    epoch: int
    timestamp: int
    size: int

    @classmethod
    def of(cls, batch: Batch) -> Waiting:
        header = batch.header
        return cls(
            header.base_offset,
            header.next_offset,
            batch.records,
            header.partition_leader_epoch,
            header.max_timestamp,
            header.size_in_bytes,
        )

    def before(self, offset: int) -> Waiting:
        """Without what comes from `offset` on."""
        return self._replace(end_offset=offset, records=self.records[: offset - self.base_offset])


class CommittedMetadata:
    def __init__(self, log: MetadataLog, pool: Pool, loader: MetadataLoader, position: int) -> None:
        #: The first offset that is not in the image.
        self.position = position
        #: When the last record in the image was written.
        self.timestamp = log.last_timestamp
        self.listeners: list[OnImage] = []
        self._log = log
        self._pool = pool
        self._loader = loader
        self._waiting: deque[Waiting] = deque()

    @property
    def image(self) -> MetadataImage:
        return self._loader.image

    @property
    def in_transaction(self) -> bool:
        """Whether the last transaction of a controller has not ended."""
        return self._loader.transaction_start is not None

    def appended(self, waiting: Waiting) -> None:
        self._waiting.append(waiting)

    def cut(self, offset: int) -> None:
        """Everything from `offset` on is gone from the log. What a leader wrote in one go may be several
        batches, of which the others had only the first ones."""
        while self._waiting and self._waiting[-1].end_offset > offset:
            last = self._waiting.pop()
            if last.base_offset < offset:
                self._waiting.append(last.before(offset))

    async def advance(self, high_watermark: int) -> int:
        """Everything below the high watermark is committed; gives the bytes that became so."""
        size = 0
        try:
            while self._waiting and self._waiting[0].base_offset <= self.position < high_watermark:
                size += self._replay(self._waiting[0], high_watermark)
                if self._waiting[0].end_offset <= self.position:
                    self._waiting.popleft()
            if self.position < high_watermark:
                size += await self._pool.run(self._replay_log, high_watermark)
                while self._waiting and self._waiting[0].end_offset <= self.position:
                    self._waiting.popleft()
        except (CorruptBatch, DecodeError, InconsistentMetadata) as error:
            raise UnusableMetadata(
                f"The metadata log in {self._log.log.directory} cannot be read: {error}."
            ) from error
        self._log.committed(high_watermark)
        self.publish()
        return size

    def _replay_log(self, high_watermark: int) -> int:
        size = 0
        for batch in self._log.batches(self.position, high_watermark):
            size += self._replay(Waiting.of(batch), high_watermark)
        return size

    def _replay(self, waiting: Waiting, end_offset: int) -> int:
        """Replay what is new and committed: a snapshot, or what is committed, may end inside."""
        first = max(self.position, waiting.base_offset)
        end = min(end_offset, waiting.end_offset)
        if waiting.records:
            records = waiting.records[first - waiting.base_offset : end - waiting.base_offset]
            self._loader.replay(records, first, waiting.epoch)
        else:
            self._loader.advance(end - 1, waiting.epoch)
        self.position = end
        self.timestamp = max(self.timestamp, waiting.timestamp)
        return waiting.size

    def publish(self) -> None:
        delta, image = self._loader.publish()
        self._tell(delta, image)

    def restore(self, loader: MetadataLoader, position: int, timestamp: int) -> None:
        """Jump to a snapshot that the leader sent."""
        before = self.image
        _, image = loader.publish()
        self._loader = loader
        self._waiting.clear()
        self.position, self.timestamp = position, timestamp
        self._log.committed(position)
        self._tell(difference(before, image), image)

    def _tell(self, delta: MetadataDelta, image: MetadataImage) -> None:
        for on_image in self.listeners:
            on_image(delta, image)
