"""Where the search for an offset or a timestamp begins in a remote segment.

Indexes make a search short, but they do not decide what is found: what a store returns is not trusted, and
not every store has a checksum of the indexes. A position from an index counts only if a batch with a suitable
offset is there; otherwise the search begins at the start of the segment.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple

from moldau.base.ids import Uuid
from moldau.base.json_log import event
from moldau.protocol.records import BATCH_HEADER_SIZE, BatchHeader, CorruptBatch, read_batch_header
from moldau.tiered.reading.chunks import ChunkCache
from moldau.tiered.reading.index_cache import IndexCache
from moldau.tiered.state.segments import RemoteSegment
from moldau.tiered.stores.interface import RemoteIndexesDamaged, RemoteSegmentMissing, SegmentIndexes

logger = logging.getLogger(__name__)

_OFFSET_ENTRY = Struct(">ii")
_TIME_ENTRY = Struct(">qi")
_SEARCH_BYTES = 64 * 1024
_MAX_REPORTED = 1000


class Found(NamedTuple):
    """A batch; `data` begins with it and may be longer or incomplete."""

    position: int
    header: BatchHeader
    data: memoryview


def scan(chunks: ChunkCache, segment: RemoteSegment, position: int, least: int) -> Iterator[Found]:
    """Iterate over the batches from a position on, the first of which begins at offset `least` or later."""
    data, start = memoryview(b""), position
    block = min(_SEARCH_BYTES, chunks.chunk_bytes)
    while segment.size - position >= BATCH_HEADER_SIZE:
        here = position - start
        if len(data) - here < BATCH_HEADER_SIZE:
            data, start, here = chunks.read(segment, position, block), position, 0
        header = read_batch_header(data, here)
        if header.size_in_bytes > segment.size - position:
            raise CorruptBatch(f"a batch at position {position} extends past the end of the segment")
        check_offsets(segment, header, position, least)
        least = header.next_offset
        yield Found(position, header, data[here:])
        position += header.size_in_bytes


def check_offsets(segment: RemoteSegment, header: BatchHeader, position: int, least: int) -> None:
    """Raise `CorruptBatch` for offsets that cannot be there; the checksum does not cover them."""
    if not least <= header.base_offset <= header.last_offset <= segment.end_offset:
        raise CorruptBatch(f"offset {header.base_offset} at position {position} cannot be there")


class Positions:
    """Thread-safe."""

    def __init__(self, indexes: IndexCache, chunks: ChunkCache) -> None:
        self._indexes = indexes
        self._chunks = chunks
        self._reported: set[Uuid] = set()
        self._lock = threading.Lock()

    def of_offset(self, segment: RemoteSegment, offset: int) -> int:
        """Return the position of a batch before the one that holds an offset; 0 without a usable index."""
        indexes = self._usable(segment)
        return 0 if indexes is None else self._before(segment, indexes, offset)

    def of_timestamp(self, segment: RemoteSegment, timestamp: int, start_offset: int) -> int:
        """Return a position before the first record at or after `start_offset` with a timestamp."""
        indexes = self._usable(segment)
        if indexes is None:
            return 0
        entries = indexes.timestamps
        last = _last_at_most(entries, _TIME_ENTRY, timestamp - 1)
        if last < 0:
            return self._before(segment, indexes, start_offset)
        largest, relative = _TIME_ENTRY.unpack_from(entries, last * _TIME_ENTRY.size)
        indexed = segment.start_offset + relative
        position = self._before(segment, indexes, indexed)
        if self._has_timestamp(segment, position, indexed, largest):
            return self._before(segment, indexes, max(indexed, start_offset))
        self._report(segment, f"entry {last} of the time index is not that of a batch")
        return 0

    def _usable(self, segment: RemoteSegment) -> SegmentIndexes | None:
        try:
            return self._indexes.get(segment)
        except (RemoteIndexesDamaged, RemoteSegmentMissing) as error:
            self._report(segment, str(error))
            return None

    def _before(self, segment: RemoteSegment, indexes: SegmentIndexes, offset: int) -> int:
        """Return the entry before the last one that could be used.

        So the batch of the last one is compared with a batch before it, like all others.
        """
        entries = indexes.offsets
        last = _last_at_most(entries, _OFFSET_ENTRY, offset - segment.start_offset)
        if last < 1:
            return 0
        relative, position = _OFFSET_ENTRY.unpack_from(entries, (last - 1) * _OFFSET_ENTRY.size)
        header = self._header(segment, position)
        if header is not None and header.base_offset <= min(segment.start_offset + relative, offset):
            return int(position)
        self._report(segment, f"entry {last - 1} of the offset index is not that of a batch")
        return 0

    def _header(self, segment: RemoteSegment, position: int) -> BatchHeader | None:
        if not 0 <= position <= segment.size - BATCH_HEADER_SIZE:
            return None
        try:
            header = read_batch_header(self._chunks.read(segment, position, BATCH_HEADER_SIZE), 0)
            check_offsets(segment, header, position, segment.start_offset)
        except CorruptBatch:
            return None
        return header if header.size_in_bytes <= segment.size - position else None

    def _has_timestamp(self, segment: RemoteSegment, position: int, offset: int, timestamp: int) -> bool:
        """Return whether the batch that holds an offset has this largest timestamp."""
        try:
            for found in scan(self._chunks, segment, position, segment.start_offset):
                if found.header.last_offset >= offset:
                    return found.header.base_offset <= offset and found.header.max_timestamp == timestamp
        except CorruptBatch:
            return False
        return False

    def _report(self, segment: RemoteSegment, reason: str) -> None:
        """Log once that the indexes of a segment cannot be used."""
        with self._lock:
            if segment.id in self._reported:
                return
            if len(self._reported) >= _MAX_REPORTED:
                self._reported.clear()
            self._reported.add(segment.id)
        logger.warning(
            "%s is read without its indexes, which is slow: %s",
            segment,
            reason,
            extra=event("tiered.index_damaged", segment=str(segment)),
        )


def _last_at_most(data: bytes, entry: Struct, value: int) -> int:
    """Return the number of the last entry whose first field is at most `value`; -1 if there is none."""
    low, high = 0, len(data) // entry.size
    while low < high:
        middle = (low + high) // 2
        if entry.unpack_from(data, middle * entry.size)[0] <= value:
            low = middle + 1
        else:
            high = middle
    return low - 1
