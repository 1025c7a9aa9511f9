"""Reading records, aborted transactions and timestamps of remote segments.

Batches are served as stored, after their checksums were verified: what a store returns is not trusted. The
offset index gives the position at which the search for a batch begins; a reader that continues where it
stopped needs no index, because its position is remembered.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple

from moldau.base.ids import Uuid
from moldau.protocol.records import (
    BATCH_HEADER_SIZE,
    BatchHeader,
    CorruptBatch,
    check_crc,
    iter_records,
    read_batch_header,
)
from moldau.storage.log.reader import TimestampOffset
from moldau.storage.segment.txn_index import AbortedTransaction
from moldau.tiered.reading.chunks import ChunkCache
from moldau.tiered.reading.index_cache import IndexCache
from moldau.tiered.state.segments import RemoteSegment
from moldau.tiered.stores.interface import RemoteStoreError

_OFFSET_ENTRY = Struct(">ii")
_TIME_ENTRY = Struct(">qi")
_TRANSACTION_ENTRY = Struct(">hqqqq")
_SEARCH_BYTES = 64 * 1024
_MAX_CURSORS = 1024


class RemoteRead(NamedTuple):
    """Whole batches of a remote segment.

    `data` is empty if there is nothing below the upper bound, or if the segment ends before the offset: then
    `next_offset` is the one after the segment.
    """

    data: memoryview
    first_offset: int
    next_offset: int


class _Found(NamedTuple):
    position: int
    header: BatchHeader
    data: memoryview


class RemoteReader:
    """Thread-safe."""

    def __init__(self, indexes: IndexCache, chunks: ChunkCache) -> None:
        self._indexes = indexes
        self._chunks = chunks
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
        position, _ = self._start(segment, offset)
        try:
            return self._read(segment, position, offset, max_bytes, upper_bound, min_one_batch)
        except CorruptBatch as error:
            self.discard(segment)
            raise RemoteStoreError(f"{segment} is damaged in the remote store: {error}") from error

    def _read(
        self,
        segment: RemoteSegment,
        position: int,
        offset: int,
        max_bytes: int,
        upper_bound: int,
        min_one_batch: bool,
    ) -> RemoteRead:
        first = self._first(segment, position, offset)
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
        self._remember(segment, next_offset, position + length)
        return RemoteRead(data[:length], header.base_offset, next_offset)

    def read_ahead(self, segment: RemoteSegment, next_offset: int) -> None:
        """Load the chunk after the one in which a read stopped, for a reader that continues there."""
        position = self._cursor(segment, next_offset)
        if position is not None:
            self._chunks.read(segment, position + self._chunks.chunk_bytes, 1)

    def wants_ahead(self, segment: RemoteSegment, next_offset: int) -> bool:
        """Return whether `read_ahead` would request anything."""
        position = self._cursor(segment, next_offset)
        return position is not None and not self._chunks.has(segment, position + self._chunks.chunk_bytes)

    def _start(self, segment: RemoteSegment, offset: int) -> tuple[int, bool]:
        """Return the position at which the search for an offset begins, and whether a read stopped there."""
        position = self._cursor(segment, offset)
        if position is not None:
            return position, True
        entries = self._indexes.get(segment).offsets
        return _last_at_most(entries, _OFFSET_ENTRY, 0, offset - segment.start_offset, 1), False

    def _first(self, segment: RemoteSegment, position: int, offset: int) -> _Found | None:
        """Return the first batch from a position on that ends at or after an offset."""
        for found in self._scan(segment, position):
            if found.header.last_offset >= offset:
                return found
        return None

    def _scan(self, segment: RemoteSegment, position: int) -> Iterator[_Found]:
        """Iterate over batches; the data of each begins with it and may be longer or incomplete."""
        data, start, least = memoryview(b""), position, segment.start_offset
        block = min(_SEARCH_BYTES, self._chunks.chunk_bytes)
        while segment.size - position >= BATCH_HEADER_SIZE:
            here = position - start
            if len(data) - here < BATCH_HEADER_SIZE:
                data, start, here = self._chunks.read(segment, position, block), position, 0
            header = read_batch_header(data, here)
            if header.size_in_bytes > segment.size - position:
                raise CorruptBatch(f"a batch at position {position} extends past the end of the segment")
            _check_offsets(segment, header, position, least)
            least = header.next_offset
            yield _Found(position, header, data[here:])
            position += header.size_in_bytes

    def aborted_transactions(
        self, segment: RemoteSegment, start: int, upper_bound: int
    ) -> tuple[list[AbortedTransaction], bool]:
        """Return the aborted transactions with records in a range, and whether later segments have none."""
        if segment.txn_index_empty:
            return [], False
        found: list[AbortedTransaction] = []
        data = self._indexes.get(segment).transactions
        size = len(data) - len(data) % _TRANSACTION_ENTRY.size
        for _, *fields in _TRANSACTION_ENTRY.iter_unpack(memoryview(data)[:size]):
            entry = AbortedTransaction(*fields)
            if entry.last_offset >= start and entry.first_offset < upper_bound:
                found.append(entry)
            if entry.last_stable_offset >= upper_bound:
                return found, True
        return found, False

    def offset_for_timestamp(
        self, segment: RemoteSegment, timestamp: int, start_offset: int
    ) -> TimestampOffset | None:
        """Return the first record at or after an offset with this timestamp or a later one."""
        indexes = self._indexes.get(segment)
        indexed = _last_at_most(indexes.timestamps, _TIME_ENTRY, 0, timestamp - 1, 1)
        relative = max(indexed, start_offset - segment.start_offset)
        position = _last_at_most(indexes.offsets, _OFFSET_ENTRY, 0, relative, 1)
        try:
            for found in self._scan(segment, position):
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
        _check_offsets(segment, header, position + here, next_offset)
        if header.size_in_bytes > len(data) - here or header.base_offset >= upper_bound:
            break
        if not check_crc(data, here, header):
            raise CorruptBatch(f"the checksum at position {position + here} does not match")
        here += header.size_in_bytes
        next_offset = header.next_offset
    return here, next_offset


def _check_offsets(segment: RemoteSegment, header: BatchHeader, position: int, least: int) -> None:
    """Raise `CorruptBatch` for offsets that cannot be there; the checksum does not cover them."""
    if not least <= header.base_offset <= header.last_offset <= segment.end_offset:
        raise CorruptBatch(f"offset {header.base_offset} at position {position} cannot be there")


def _last_at_most(data: bytes, entry: Struct, key: int, value: int, result: int) -> int:
    """Return a field of the last entry whose key is at most `value`; 0 if there is none."""
    low, high = 0, len(data) // entry.size
    while low < high:
        middle = (low + high) // 2
        if entry.unpack_from(data, middle * entry.size)[key] <= value:
            low = middle + 1
        else:
            high = middle
    return int(entry.unpack_from(data, (low - 1) * entry.size)[result]) if low else 0
