"""The two sparse indexes of a segment: offset to file position, and timestamp to offset.

Entries are Kafka's: 8 bytes (relative offset, position) in `.index`, 12 bytes (timestamp, relative offset) in
`.timeindex`, big-endian, offsets relative to the segment's base. Both fields of an index grow from entry to
entry, so either can be searched.

New entries are collected in a small tail in memory and written to the file in blocks. Indexes of closed
segments are neither mapped nor cached: a search reads a dozen small pieces of the file. After a crash,
recovery rebuilds the indexes of everything that was not flushed. Apache Kafka reserves 10 MB of zeros per
index of an active segment and leaves them when killed; they are ignored.

Only the event loop changes an index; other threads may search it at any time: the number of stored entries
and the tail are replaced together, as one tuple, and a tail only grows. A search that overlaps a truncation
may find an entry that is gone; the log detects that and searches again.
"""

from __future__ import annotations

import logging
from struct import Struct
from typing import ClassVar, NamedTuple

from moldau.storage.disk.disk import File, WouldWait
from moldau.storage.segment.files import OFFSET_INDEX, TIME_INDEX, SegmentFiles

NO_TIMESTAMP = -1

logger = logging.getLogger(__name__)

_BLOCK = 512
_UNKNOWN = -1

_Pair = tuple[int, int]
_Data = bytes | bytearray | memoryview


class _Index:
    """Sorted pairs in a file, and a tail that is not in the file yet."""

    __slots__ = ("_segment", "_state")
    ENTRY_SIZE: ClassVar[int]
    _kind: ClassVar[str]
    _entry: ClassVar[Struct]

    def __init__(self, segment: SegmentFiles, *, empty: bool = False) -> None:
        self._segment = segment
        #: The number of entries in the file (read at first use) and the bytes of the tail.
        self._state: tuple[int, bytearray] = (0 if empty else _UNKNOWN, bytearray())

    def __len__(self) -> int:
        stored, tail = self._load()
        return stored + len(tail) // self.ENTRY_SIZE

    def write(self) -> None:
        """Write the tail and truncate what Kafka may have reserved after the entries."""
        self._load()
        self._write_tail()
        self._segment.file(self._kind, create=True).truncate(self._state[0] * self.ENTRY_SIZE)

    def sync(self) -> None:
        self._segment.file(self._kind, create=True).sync()

    def reset(self) -> None:
        """Remove all entries."""
        self._segment.file(self._kind, create=True).truncate(0)
        self._state = (0, bytearray())

    def _add(self, first: int, second: int) -> None:
        tail = self._load()[1]
        tail += self._entry.pack(first, second)
        if len(tail) >= _BLOCK * self.ENTRY_SIZE:
            try:
                self._write_tail()
            except OSError as error:
                # The batch is already written; the entries stay in the tail until a write succeeds.
                logger.warning("%s cannot be written: %s", self._segment.path(self._kind), error)

    def _write_tail(self) -> None:
        stored, tail = self._state
        if tail:
            file = self._segment.file(self._kind, create=True)
            file.pwrite((bytes(tail),), stored * self.ENTRY_SIZE)
            self._state = (stored + len(tail) // self.ENTRY_SIZE, bytearray())

    def _truncate_before(self, value: int, field: int) -> None:
        """Keep only the entries whose field is below `value`."""
        stored, tail = self._load()
        found = self._find(value - 1, field)
        count = found[0] + 1 if found else 0
        if count < stored:
            # The file keeps the rest until the next write: a thread may be searching it.
            self._state = (count, bytearray())
        else:
            self._state = (stored, tail[: (count - stored) * self.ENTRY_SIZE])

    def _last(self, *, blocking: bool = True) -> _Pair | None:
        stored, tail = self._load()
        if tail:
            return self._unpack(tail, len(tail) // self.ENTRY_SIZE - 1)
        return self._read(self._segment.file(self._kind), stored - 1, blocking) if stored else None

    def _find(self, value: int, field: int, *, blocking: bool = True) -> tuple[int, _Pair] | None:
        """The last entry whose field is at most `value`, with its number."""
        stored, tail = self._load()
        if tail and self._unpack(tail, 0)[field] <= value:
            return self._find_in(tail, stored, value, field)
        if not stored:
            return None
        file = self._segment.file(self._kind)
        low, high = 0, (stored - 1) // _BLOCK
        while low < high:
            middle = (low + high + 1) // 2
            if self._read(file, middle * _BLOCK, blocking)[field] <= value:
                low = middle
            else:
                high = middle - 1
        first = low * _BLOCK
        count = min(_BLOCK, stored - first)
        block = _read_piece(file, count * self.ENTRY_SIZE, first * self.ENTRY_SIZE, blocking)
        return self._find_in(block, first, value, field)

    def _find_in(self, data: _Data, first: int, value: int, field: int) -> tuple[int, _Pair] | None:
        unpack, size = self._entry.unpack_from, self.ENTRY_SIZE
        low, high = 0, len(data) // size
        while low < high:
            middle = (low + high) // 2
            if unpack(data, middle * size)[field] <= value:
                low = middle + 1
            else:
                high = middle
        return (first + low - 1, self._unpack(data, low - 1)) if low else None

    def _load(self) -> tuple[int, bytearray]:
        state = self._state
        if state[0] != _UNKNOWN:
            return state
        loaded = (self._count_stored(), state[1])
        if self._state is state:
            self._state = loaded
        return loaded

    def _count_stored(self) -> int:
        try:
            file = self._segment.file(self._kind)
        except FileNotFoundError:
            return 0
        count = file.size() // self.ENTRY_SIZE
        if count == 0 or self._read(file, count - 1, True) != (0, 0):
            return count
        low, high = 0, count - 1
        while low < high:
            middle = (low + high) // 2
            if self._read(file, middle, True) == (0, 0):
                high = middle
            else:
                low = middle + 1
        return low

    def _read(self, file: File, number: int, blocking: bool) -> _Pair:
        return self._unpack(_read_piece(file, self.ENTRY_SIZE, number * self.ENTRY_SIZE, blocking), 0)

    def _unpack(self, data: _Data, number: int) -> _Pair:
        first, second = self._entry.unpack_from(data, number * self.ENTRY_SIZE)
        return first, second


def _read_piece(file: File, size: int, offset: int, blocking: bool) -> bytes | memoryview:
    if blocking:
        return file.pread(size, offset)
    data = file.pread_nowait(size, offset)
    if data is None:
        raise WouldWait
    return data


class OffsetPosition(NamedTuple):
    offset: int
    position: int


class OffsetIndex(_Index):
    """The last offset of some batches and their position in the `.log`."""

    __slots__ = ()
    _kind = OFFSET_INDEX
    _entry = Struct(">iI")
    ENTRY_SIZE = _entry.size

    def append(self, offset: int, position: int) -> None:
        """Add an entry; the caller keeps offsets ascending and within 31 bits of the base."""
        self._add(offset - self._segment.base_offset, position)

    def lookup(self, offset: int, *, blocking: bool = True) -> OffsetPosition:
        """The last entry at or before an offset; the beginning of the segment if there is none."""
        base = self._segment.base_offset
        found = self._find(offset - base, 0, blocking=blocking)
        return OffsetPosition(base + found[1][0], found[1][1]) if found else OffsetPosition(base, 0)

    def batch_before(self, position: int, *, blocking: bool = True) -> int:
        """The position of the last indexed batch at or before `position`; 0 if there is none."""
        found = self._find(position, 1, blocking=blocking)
        return found[1][1] if found else 0

    def last(self) -> OffsetPosition:
        pair = self._last()
        base = self._segment.base_offset
        return OffsetPosition(base + pair[0], pair[1]) if pair else OffsetPosition(base, 0)

    def is_full(self, max_bytes: int) -> bool:
        return len(self) >= max_bytes // self.ENTRY_SIZE

    def truncate_to(self, offset: int) -> None:
        """Remove the entries at or after an offset."""
        self._truncate_before(offset - self._segment.base_offset, 0)


class TimeOffset(NamedTuple):
    timestamp: int
    offset: int


class TimeIndex(_Index):
    """The largest timestamp up to some batches, with the last offset of the batch that has it."""

    __slots__ = ()
    _kind = TIME_INDEX
    _entry = Struct(">qi")
    ENTRY_SIZE = _entry.size

    def append(self, timestamp: int, offset: int) -> None:
        """Add an entry, unless its timestamp is not larger than the last one."""
        last = self._last()
        if timestamp > (last[0] if last else NO_TIMESTAMP):
            self._add(timestamp, offset - self._segment.base_offset)

    def lookup(self, timestamp: int) -> TimeOffset:
        """The last entry at or before a timestamp."""
        base = self._segment.base_offset
        found = self._find(timestamp, 0)
        return TimeOffset(found[1][0], base + found[1][1]) if found else TimeOffset(NO_TIMESTAMP, base)

    def last(self) -> TimeOffset:
        pair = self._last()
        base = self._segment.base_offset
        return TimeOffset(pair[0], base + pair[1]) if pair else TimeOffset(NO_TIMESTAMP, base)

    def is_full(self, max_bytes: int) -> bool:
        """Whether only the place for the entry that closes the segment is left."""
        return len(self) >= max_bytes // self.ENTRY_SIZE - 1

    def truncate_to(self, offset: int) -> None:
        """Remove the entries at or after an offset."""
        self._truncate_before(offset - self._segment.base_offset, 1)
