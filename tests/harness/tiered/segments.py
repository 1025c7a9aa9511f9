"""Remote segments for unit tests: metadata, records that announce them, and bytes to store."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from moldau.base.ids import TopicId, Uuid
from moldau.protocol.records import Record, build_batch, patch_batch
from moldau.storage.log.leader_epochs import EpochEntry
from moldau.storage.producers.snapshot import encode_snapshot
from moldau.tiered.state.remote_log import RemoteLog
from moldau.tiered.state.segments import (
    PartitionId,
    RemoteSegment,
    SegmentState,
    metadata_record,
    update_record,
)
from moldau.tiered.stores.interface import SegmentIndexes

PARTITION = PartitionId("orders", TopicId(Uuid(bytes(range(16)))), 3)
STARTED, FINISHED, DELETING, DELETED = SegmentState


def segment(
    number: int, start: int, end: int, epochs: Iterable[tuple[int, int]] = (), **more: int
) -> RemoteSegment:
    """Return the metadata of a segment; all its records are of epoch 0 unless `epochs` are given."""
    return RemoteSegment(
        partition_id=PARTITION,
        id=Uuid(number.to_bytes(16, "big")),
        start_offset=start,
        end_offset=end,
        epochs=tuple(EpochEntry(*each) for each in epochs) or (EpochEntry(0, start),),
        size=more.get("size", 100),
        max_timestamp_ms=more.get("max_timestamp_ms", end),
        broker_id=1,
        event_timestamp_ms=more.get("event_timestamp_ms", 0),
    )


def move(remote: RemoteLog, item: RemoteSegment, *states: SegmentState) -> None:
    """Replay the records that take a segment through states."""
    for state in states:
        if state is STARTED:
            remote.replay(metadata_record(item))
        else:
            remote.replay(update_record(item, state, broker_id=1, now_ms=item.event_timestamp_ms))


def remote_log(*items: RemoteSegment) -> RemoteLog:
    """Return a remote log with finished segments."""
    remote = RemoteLog()
    for item in items:
        move(remote, item, STARTED, FINISHED)
    return remote


class Source:
    """The bytes of a segment with `per_batch` records in each batch, and its indexes."""

    def __init__(self, start: int, values: Sequence[bytes], index_every: int = 3, per_batch: int = 1) -> None:
        data, offsets, timestamps = bytearray(), bytearray(), bytearray()
        for number, first in enumerate(range(0, len(values), per_batch)):
            own = values[first : first + per_batch]
            records = [Record(n, 1000 + start + first + n, None, value) for n, value in enumerate(own)]
            batch = build_batch(records)
            patch_batch(batch, 0, start + first, 0)
            last = first + len(own) - 1
            if number and number % index_every == 0:
                offsets += last.to_bytes(4, "big") + len(data).to_bytes(4, "big")
                timestamps += (1000 + start + last).to_bytes(8, "big") + last.to_bytes(4, "big")
            data += batch
        self.data = bytes(data)
        self._indexes = SegmentIndexes(
            bytes(offsets), bytes(timestamps), b"", b"0\n1\n0 0\n", encode_snapshot([])
        )

    @property
    def size(self) -> int:
        return len(self.data)

    def pieces(self) -> Iterator[bytes]:
        for position in range(0, len(self.data), 1000):
            yield self.data[position : position + 1000]

    def indexes(self) -> SegmentIndexes:
        return self._indexes

    def use(self, indexes: SegmentIndexes) -> None:
        """Replace the indexes."""
        self._indexes = indexes
