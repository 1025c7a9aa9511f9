"""Reading a segment: finding the position of a batch, and returning whole batches from there on.

Not all batch headers are read: the offset index has the positions of some batches, so only the headers from
the indexed batch before the start to the start, and from the one before the end to the end, are read. A
reader that continues where it stopped does not need the first step: `_Cursors` stores the position.

No damaged batch is served. Bytes that this process wrote were validated when they arrived; all others are
verified by checksum when they are first read, and again whenever they are read from the disk (`_Verified`).

Reads run in the loop (`blocking=False`: `WouldWait` instead of waiting for the disk) and in threads, while
the loop appends. They take the segment's size first and never read past it. Truncation replaces the reader,
so that an overlapping read leaves no state behind.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from moldau.protocol.records import (
    BATCH_HEADER_SIZE,
    BatchHeader,
    CorruptBatch,
    check_crc,
    read_batch_header,
)
from moldau.storage.disk.disk import File, WouldWait
from moldau.storage.segment.files import LOG, SegmentFiles
from moldau.storage.segment.index import OffsetIndex

#: Smaller reads are copied, which is cheaper than a mapping.
MAP_THRESHOLD = 128 * 1024
SCAN_BLOCK = 1024 * 1024
_SEARCH_BLOCK = 16 * 1024
#: Reading this many headers takes as long as a search in the index.
_FEW_BATCHES = 16
_MAX_RANGES = 16
_MAX_CURSORS = 16
_FOREVER = 2**63


class StoredBatch(NamedTuple):
    """A batch in a segment; `data` is the whole batch, including its header."""

    position: int
    header: BatchHeader
    data: memoryview


class SegmentRead(NamedTuple):
    """Whole batches and their position, the base offset of the first, and the offset after the last."""

    data: memoryview
    position: int
    first_offset: int
    next_offset: int


class SegmentReader:
    __slots__ = ("_cursors", "_files", "_index", "_verified", "closed", "mapped")

    def __init__(self, files: SegmentFiles, index: OffsetIndex, *, trusted_from: int) -> None:
        self._files = files
        self._index = index
        self._cursors = _Cursors()
        self._verified = _Verified(trusted_from)
        #: Only a closed segment is mapped; `mapped` is set once it has been.
        self.closed = False
        self.mapped = False

    def distrust(self) -> None:
        """Verify everything again when it is read, because damage was found."""
        self._verified = _Verified(_FOREVER)

    def scan(self, position: int, end: int) -> Iterator[StoredBatch]:
        """Iterate over batches, reading large blocks; `CorruptBatch` where the bytes cannot be a batch."""
        return _scan(self._files.file(LOG), position, end, SCAN_BLOCK)

    def position_of(self, offset: int, size: int) -> int | None:
        """Return the position of the first batch that ends at or after `offset`; None if all end before."""
        position = self._index.lookup(offset).position
        for batch in _scan(self._files.file(LOG), position, size, _SEARCH_BLOCK):
            if batch.header.last_offset >= offset:
                return batch.position
        return None

    def read(
        self,
        offset: int,
        max_bytes: int,
        size: int,
        *,
        upper_bound: int | None,
        end_offset: int,
        min_one_batch: bool,
        blocking: bool,
    ) -> SegmentRead | None:
        """Return batches from the first that ends at or after `offset`; None if all end before it.

        Batches stop before `upper_bound` (None: no limit); `end_offset` is the end of the segment's offsets.
        """
        file = self._files.open_files.get(self._files.log_path)
        start, data, first = self._find_start(file, offset, max_bytes, size, blocking)
        if first is None:
            return None
        _check_place(file.path, start, first, first.base_offset, end_offset)
        room = min(max(max_bytes, first.size_in_bytes) if min_one_batch else max_bytes, size - start)
        if (upper_bound is not None and first.base_offset >= upper_bound) or first.size_in_bytes > room:
            return SegmentRead(memoryview(b""), start, first.base_offset, offset)
        if len(data) < first.size_in_bytes:
            data = self._fetch(file, room, start, blocking)
        data = data[:room]
        if len(data) < first.size_in_bytes:
            raise damaged(file.path, start, f"the file should have {size} bytes, but ends inside this batch")
        if upper_bound is None and start + len(data) == size and self._is_verified(start, size, blocking):
            length, next_offset = len(data), end_offset
        else:
            length, next_offset = self._whole_batches(data, start, first, upper_bound, end_offset, blocking)
        self._cursors.put(next_offset, start + length)
        return SegmentRead(data[:length], start, first.base_offset, next_offset)

    def _find_start(
        self, file: File, offset: int, max_bytes: int, size: int, blocking: bool
    ) -> tuple[int, memoryview, BatchHeader | None]:
        """Find the first wanted batch: its position, some bytes from there on, and its header."""
        position = self._cursors.get(offset)
        ahead, expected = 0, offset
        if position is None:
            position = self._index.lookup(offset, blocking=blocking).position
            ahead, expected = _SEARCH_BLOCK, self._files.base_offset
        while size - position >= BATCH_HEADER_SIZE:
            wanted = min(max(max_bytes, BATCH_HEADER_SIZE) + ahead, size - position)
            data = self._fetch(file, wanted, position, blocking)
            if len(data) < BATCH_HEADER_SIZE:
                raise damaged(file.path, position, f"the file should have {size} bytes, but ends here")
            here = 0
            while len(data) - here >= BATCH_HEADER_SIZE:
                header = _header_at(file.path, data, here, position)
                if header.size_in_bytes > size - position - here:
                    raise damaged(file.path, position + here, "a batch extends past the end of the file")
                if header.base_offset < expected:
                    raise damaged(file.path, position + here, f"offset {header.base_offset} is too low")
                if header.last_offset >= offset:
                    return position + here, data[here:], header
                expected = header.next_offset
                here += header.size_in_bytes
            position += here
        if position < size:
            raise damaged(file.path, position, "the file ends inside a batch")
        return position, memoryview(b""), None

    def _fetch(self, file: File, size: int, position: int, blocking: bool) -> memoryview:
        if blocking:
            return memoryview(file.pread(size, position))
        if self.closed and size >= MAP_THRESHOLD:
            self.mapped = True
            mapped = file.map(position, size, resident_only=True)
            if mapped is not None:
                return mapped
        data = file.pread_nowait(size, position)
        if data is None:
            raise WouldWait
        return memoryview(data)

    def _is_verified(self, start: int, end: int, blocking: bool) -> bool:
        return self._verified.covers(start, end) and not (blocking and self.closed)

    def _whole_batches(
        self,
        data: memoryview,
        start: int,
        first: BatchHeader,
        upper_bound: int | None,
        end_offset: int,
        blocking: bool,
    ) -> tuple[int, int]:
        """Return how many bytes of `data` are whole batches below the bound, and the offset after them."""
        if not self._is_verified(start, start + len(data), blocking):
            length, next_offset = self._walk(data, start, 0, upper_bound, verify_to=end_offset)
            self._verified.add(start, start + length)
            return length, next_offset
        if len(data) < first.size_in_bytes * _FEW_BATCHES:
            return self._walk(data, start, 0, upper_bound)
        limit = len(data)
        while True:
            indexed = self._index.batch_before(start + limit - 1, blocking=blocking)
            if upper_bound is not None:
                indexed = min(indexed, self._index.lookup(upper_bound - 1, blocking=blocking).position)
            here = max(0, indexed - start)
            length, next_offset = self._walk(data, start, here, upper_bound)
            if length > here or here == 0:
                return length, next_offset
            # The indexed batch is incomplete: start one entry earlier to find the last whole batch.
            limit = here

    def _walk(
        self,
        data: memoryview,
        start: int,
        here: int,
        upper_bound: int | None,
        *,
        verify_to: int | None = None,
    ) -> tuple[int, int]:
        """Walk over batch headers; with `verify_to`, the end offset of the segment, verify the batches."""
        path = self._files.log_path
        begin, next_offset = here, -1
        while len(data) - here >= BATCH_HEADER_SIZE:
            try:
                header = _header_at(path, data, here, start)
                if header.size_in_bytes > len(data) - here:
                    break
                if verify_to is not None:
                    verify_batch(path, start + here, data[here:], header, next_offset, verify_to)
            except CorruptBatch:
                if here == begin:
                    raise
                # Serve the batches before the damage; the next read raises the error.
                break
            if upper_bound is not None and header.base_offset >= upper_bound:
                break
            here += header.size_in_bytes
            next_offset = header.next_offset
        return here, next_offset


def damaged(path: str, position: int, why: str) -> CorruptBatch:
    return CorruptBatch(f"{path} at position {position}: {why}")


def verify_batch(
    path: str, position: int, data: memoryview, header: BatchHeader, least: int, end_offset: int
) -> None:
    """Raise `CorruptBatch` unless the checksum matches and the offsets are in `[least, end_offset)`."""
    if not check_crc(data, 0, header):
        raise damaged(path, position, "the checksum does not match")
    _check_place(path, position, header, least, end_offset)


def _check_place(path: str, position: int, header: BatchHeader, least: int, end_offset: int) -> None:
    if not least <= header.base_offset <= header.last_offset < end_offset:
        found = f"offsets {header.base_offset} to {header.last_offset}"
        raise damaged(path, position, f"{found} are not between {least} and {end_offset - 1}")


def _scan(file: File, position: int, end: int, block_size: int) -> Iterator[StoredBatch]:
    block, start = memoryview(b""), position
    while position < end:
        here = position - start
        if len(block) - here < BATCH_HEADER_SIZE:
            block, start, here = _block(file, position, block_size, end), position, 0
        header = _header_at(file.path, block, here, start)
        size = header.size_in_bytes
        if size > end - position:
            raise damaged(file.path, position, f"expected {size} bytes, but {end - position} are left")
        if size > len(block) - here:
            block, start, here = _block(file, position, max(size, block_size), end), position, 0
        yield StoredBatch(position, header, block[here : here + size])
        position += size


def _block(file: File, position: int, size: int, end: int) -> memoryview:
    return memoryview(file.pread(min(size, end - position), position))


def _header_at(path: str, data: memoryview, here: int, start: int) -> BatchHeader:
    try:
        return read_batch_header(data, here)
    except CorruptBatch as error:
        raise damaged(path, start + here, str(error)) from error


class _Verified:
    """The verified ranges of a file: a few, which grow and merge."""

    __slots__ = ("_ranges",)

    def __init__(self, trusted_from: int) -> None:
        self._ranges: list[tuple[int, int]] = [(trusted_from, _FOREVER)]

    def add(self, start: int, end: int) -> None:
        apart = []
        for low, high in self._ranges:
            if high < start or low > end:
                apart.append((low, high))
            else:
                start, end = min(low, start), max(high, end)
        apart.append((start, end))
        self._ranges = apart[-_MAX_RANGES:]

    def covers(self, start: int, end: int) -> bool:
        return any(low <= start and end <= high for low, high in self._ranges)


class _Cursors:
    """The positions of the offsets at which readers stopped."""

    __slots__ = ("_positions",)

    def __init__(self) -> None:
        self._positions: dict[int, int] = {}

    def get(self, offset: int) -> int | None:
        return self._positions.get(offset)

    def put(self, offset: int, position: int) -> None:
        if len(self._positions) >= _MAX_CURSORS:
            # Another thread may run between these lines; a lost position costs one search.
            self._positions = {}
        self._positions[offset] = position
