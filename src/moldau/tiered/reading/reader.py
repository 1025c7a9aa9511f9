"""Reading records, aborted transactions and timestamps of remote segments.

Batches are served as stored, after their checksums were verified: what a store returns is not trusted. The
checksum of a batch does not cover its offsets, so they are compared with those of the batches around it. The
offset index gives the position at which the search for a batch begins; a reader that continues where it
stopped needs no index, because its position is remembered. If a search that began in the middle finds only
later offsets, it is repeated from the start of the segment.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from struct import Struct
from typing import NamedTuple

from moldau.base.ids import Uuid
from moldau.protocol.records import (
    BATCH_HEADER_SIZE,
    CorruptBatch,
    check_crc,
    iter_records,
    read_batch_header,
)
from moldau.storage.log.reader import TimestampOffset
from moldau.storage.segment.txn_index import AbortedTransaction
from moldau.tiered.reading.chunks import ChunkCache
from moldau.tiered.reading.index_cache import IndexCache
from moldau.tiered.reading.positions import Found, Positions, check_offsets, scan
from moldau.tiered.state.segments import RemoteSegment
from moldau.tiered.stores.interface import RemoteIndexesDamaged, RemoteStoreError

_TRANSACTION_ENTRY = Struct(">hqqqq")
_TRANSACTION_VERSION = 0
_MAX_CURSORS = 1024


class RemoteRead(NamedTuple):
    """Whole batches of a remote segment.

    `data` is empty if there is nothing below the upper bound, or if the segment ends before the offset: then
    `next_offset` is the one after the segment.
    """

    data: memoryview
    first_offset: int
    next_offset: int


class RemoteReader:
    """Thread-safe."""

    def __init__(self, indexes: IndexCache, chunks: ChunkCache) -> None:
        self._indexes = indexes
        self._chunks = chunks
        self._positions = Positions(indexes, chunks)
        #: The positions at which reads stopped.
        self._cursors: OrderedDict[tuple[Uuid, int], int] = OrderedDict()
        self._lock = threading.Lock()

    def discard(self, segment: RemoteSegment) -> None:
        """Forget everything read of a segment that is deleted or damaged."""
        self._indexes.discard(segment.id)
        self._chunks.discard(segment)

    def read(
        self, segment: RemoteSegment, offset: int, max_bytes: int, *, upper_bound: int, min_one_batch: bool
    ) -> RemoteRead:
        """Return whole batches from the one that holds `offset`, below `upper_bound`."""
        try:
            return self._read(segment, offset, max_bytes, upper_bound, min_one_batch)
        except CorruptBatch as error:
            self.discard(segment)
            raise RemoteStoreError(f"{segment} is damaged in the remote store: {error}") from error

    def _read(
        self, segment: RemoteSegment, offset: int, max_bytes: int, upper_bound: int, min_one_batch: bool
    ) -> RemoteRead:
        first = self._first(segment, offset)
        if first is None:
            return RemoteRead(memoryview(b""), offset, max(offset, segment.end_offset + 1))
        if first.header.base_offset >= upper_bound:
            return RemoteRead(memoryview(b""), offset, offset)
        position, header, data = first
        size = header.size_in_bytes
        wanted = max(max_bytes, size) if min_one_batch else max_bytes
        if size > wanted:
            return RemoteRead(memoryview(b""), header.base_offset, offset)
        if len(data) < min(wanted, segment.size - position):
            data = self._chunks.read(segment, position, wanted)
        length, next_offset = _whole_batches(segment, data[:wanted], position, upper_bound)
        end = position + length
        if len(data[:wanted]) - length < BATCH_HEADER_SIZE <= segment.size - end:
            header = read_batch_header(self._chunks.read(segment, end, BATCH_HEADER_SIZE), 0)
            check_offsets(segment, header, end, next_offset)
        self._remember(segment, next_offset, end)
        return RemoteRead(data[:length], first.header.base_offset, next_offset)

    def read_ahead(self, segment: RemoteSegment, next_offset: int) -> None:
        """Load the chunk after the one in which a read stopped, for a reader that continues there."""
        position = self._cursor(segment, next_offset)
        if position is not None:
            self._chunks.read(segment, position + self._chunks.chunk_bytes, 1)

    def wants_ahead(self, segment: RemoteSegment, next_offset: int) -> bool:
        """Return whether `read_ahead` would request anything."""
        position = self._cursor(segment, next_offset)
        return position is not None and not self._chunks.has(segment, position + self._chunks.chunk_bytes)

    def _first(self, segment: RemoteSegment, offset: int) -> Found | None:
        """Return the first batch that ends at or after an offset."""
        position = self._cursor(segment, offset)
        if position is not None:
            return self._first_from(segment, position, offset, least=offset)
        position = self._positions.of_offset(segment, offset)
        found = None
        try:
            found = self._first_from(segment, position, offset, least=segment.start_offset)
        except CorruptBatch:
            if position == 0:
                raise
        if position and (found is None or found.header.base_offset > offset):
            # Compaction leaves gaps between offsets, but a damaged index would look the same.
            return self._first_from(segment, 0, offset, least=segment.start_offset)
        return found

    def _first_from(self, segment: RemoteSegment, position: int, offset: int, least: int) -> Found | None:
        for found in scan(self._chunks, segment, position, least):
            if found.header.last_offset >= offset:
                return found
        return None

    def aborted_transactions(
        self, segment: RemoteSegment, start: int, upper_bound: int
    ) -> tuple[list[AbortedTransaction], bool]:
        """Return the aborted transactions with records in a range, and whether later segments have none."""
        if segment.txn_index_empty:
            return [], False
        found: list[AbortedTransaction] = []
        data = self._indexes.get(segment).transactions
        if len(data) % _TRANSACTION_ENTRY.size:
            raise self._damaged_transactions(segment)
        for version, *fields in _TRANSACTION_ENTRY.iter_unpack(data):
            entry = AbortedTransaction(*fields)
            if (
                version != _TRANSACTION_VERSION
                or entry.first_offset > entry.last_offset
                or not segment.start_offset <= entry.last_offset <= segment.end_offset
            ):
                raise self._damaged_transactions(segment)
            if entry.last_offset >= start and entry.first_offset < upper_bound:
                found.append(entry)
            if entry.last_stable_offset >= upper_bound:
                return found, True
        return found, False

    def _damaged_transactions(self, segment: RemoteSegment) -> RemoteIndexesDamaged:
        """Without this index, records of aborted transactions would be read as committed ones."""
        self._indexes.discard(segment.id)
        return RemoteIndexesDamaged(f"the transaction index of {segment} is damaged in the remote store")

    def offset_for_timestamp(
        self, segment: RemoteSegment, timestamp: int, start_offset: int
    ) -> TimestampOffset | None:
        """Return the first record at or after an offset with this timestamp or a later one."""
        try:
            position = self._positions.of_timestamp(segment, timestamp, start_offset)
            for found in scan(self._chunks, segment, position, segment.start_offset):
                header = found.header
                if header.max_timestamp < timestamp or header.last_offset < start_offset:
                    continue
                batch = self._chunks.read(segment, found.position, header.size_in_bytes)
                if not check_crc(batch, 0, header):
                    raise CorruptBatch(f"the checksum at position {found.position} does not match")
                for record in iter_records(batch, header):
                    if record.timestamp >= timestamp and record.offset >= start_offset:
                        epoch = max(-1, header.partition_leader_epoch)
                        return TimestampOffset(record.timestamp, record.offset, epoch)
        except CorruptBatch as error:
            self.discard(segment)
            raise RemoteStoreError(f"{segment} is damaged in the remote store: {error}") from error
        return None

    def _cursor(self, segment: RemoteSegment, offset: int) -> int | None:
        with self._lock:
            return self._cursors.get((segment.id, offset))

    def _remember(self, segment: RemoteSegment, offset: int, position: int) -> None:
        with self._lock:
            self._cursors[segment.id, offset] = position
            if len(self._cursors) > _MAX_CURSORS:
                self._cursors.popitem(last=False)


def _whole_batches(
    segment: RemoteSegment, data: memoryview, position: int, upper_bound: int
) -> tuple[int, int]:
    """Return how many bytes are whole batches below the bound, and the offset after them."""
    here, next_offset = 0, segment.start_offset
    while len(data) - here >= BATCH_HEADER_SIZE:
        header = read_batch_header(data, here)
        check_offsets(segment, header, position + here, next_offset)
        if header.size_in_bytes > len(data) - here or header.base_offset >= upper_bound:
            break
        if not check_crc(data, here, header):
            raise CorruptBatch(f"the checksum at position {position + here} does not match")
        here += header.size_in_bytes
        next_offset = header.next_offset
    return here, next_offset
