"""One segment of a log: a `.log` file of record batches, its indexes, and how it grows and shrinks.

The first `size` bytes of the `.log` are whole batches with ascending offsets. Bytes after them may be the
remains of a failed write and are never read.

Only the last segment of a log, the active one, grows. An offset index entry is added for the first batch that
begins more than `index.interval.bytes` after the last indexed one, together with a time index entry. `finish`
closes the segment: the indexes are completed, and from then on the file may be mapped. A segment that is
truncated after it was mapped (a follower truncates) is copied first, because touching a mapped page after the
end of its file kills the process.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence

from moldau.protocol.records import BatchHeader, CorruptBatch
from moldau.storage.disk.disk import Buffer
from moldau.storage.disk.open_files import OpenFiles
from moldau.storage.log.config import LogConfig
from moldau.storage.segment.files import KINDS, LOG, OFFSET_INDEX, TIME_INDEX, TRUNCATED, SegmentFiles
from moldau.storage.segment.index import NO_TIMESTAMP, OffsetIndex, TimeIndex, TimeOffset
from moldau.storage.segment.reader import SCAN_BLOCK, SegmentReader, StoredBatch
from moldau.storage.segment.txn_index import TransactionIndex

MAX_RELATIVE_OFFSET = 2**31 - 1
#: Smaller files get their blocks as they grow; larger ones have them reserved ahead.
_ALLOCATE_FROM = 4 * 1024 * 1024
_ALLOCATE_AHEAD = 16 * 1024 * 1024

logger = logging.getLogger(__name__)


class Segment:
    """Batches go through `append_batch` or `append`; `reader` and the indexes serve reads and searches."""

    __slots__ = (
        "_allocated",
        "_bytes_since_index_entry",
        "_first_timestamp",
        "_index_interval_bytes",
        "_largest",
        "_max_bytes",
        "_max_index_bytes",
        "base_offset",
        "created_ms",
        "files",
        "index_full",
        "offset_index",
        "reader",
        "roll_jitter_ms",
        "size",
        "time_index",
        "txn_index",
    )

    def __init__(
        self, files: SegmentFiles, config: LogConfig, *, size: int, created_ms: int, new: bool
    ) -> None:
        self.files = files
        self.base_offset = files.base_offset
        self.size = size
        self.created_ms = created_ms
        self.roll_jitter_ms = 0
        self.offset_index = OffsetIndex(files, empty=new)
        self.time_index = TimeIndex(files, empty=new)
        self.txn_index = TransactionIndex(files, empty=new)
        self.index_full = False
        self.reader = SegmentReader(files, self.offset_index, trusted_from=size)
        self._index_interval_bytes = config.index_interval_bytes
        self._max_bytes = config.segment_bytes
        self._allocated = max(size, _ALLOCATE_FROM)
        self._max_index_bytes = config.segment_index_bytes
        self._bytes_since_index_entry = 0
        #: The largest timestamp with the last offset of its batch; None until read from the time index.
        self._largest = TimeOffset(NO_TIMESTAMP, files.base_offset) if new else None
        self._first_timestamp: int | None = None

    @classmethod
    def open(
        cls, open_files: OpenFiles, directory: str, base_offset: int, config: LogConfig, *, suffix: str = ""
    ) -> Segment:
        """Open a segment whose `.log` exists, as a closed one. Reads nothing but the size."""
        files = SegmentFiles(open_files, directory, base_offset, suffix)
        size, modified_ms = open_files.disk.size(files.log_path), files.modified_ms()
        segment = cls(files, config, size=size, created_ms=modified_ms, new=False)
        segment.reader.closed = True
        return segment

    @classmethod
    def create(
        cls,
        open_files: OpenFiles,
        directory: str,
        base_offset: int,
        config: LogConfig,
        *,
        now_ms: int,
        suffix: str = "",
    ) -> Segment:
        """Create an empty segment in place of any files of the same name; the cleaner's are `.cleaned`.

        The `.log` is created last: if an earlier step fails, no segment exists that a restart would find.
        """
        files = SegmentFiles(open_files, directory, base_offset, suffix)
        disk = open_files.disk
        for kind in KINDS:
            disk.remove(files.path(kind))
            open_files.forget(files.path(kind))
        for kind in (OFFSET_INDEX, TIME_INDEX):
            disk.open(files.path(kind), create=True).close()
        segment = cls(files, config, size=0, created_ms=now_ms, new=True)
        log = disk.open(files.log_path, create=True)
        if config.preallocate:
            log.allocate(0, config.segment_bytes)
            segment._allocated = config.segment_bytes
        log.close()
        return segment

    def append_batch(self, data: Buffer, last_offset: int, max_timestamp: int) -> None:
        """Write one batch at the end and index it. After an `OSError` the segment is as it was before."""
        self._write(data)
        self._account(len(data), last_offset, max_timestamp)

    def append(self, data: Buffer, headers: Sequence[BatchHeader]) -> None:
        """Write several batches at once; `headers` are theirs, in order, with their final offsets."""
        self._write(data)
        for header in headers:
            self._account(header.size_in_bytes, header.last_offset, header.max_timestamp)

    def _write(self, data: Buffer) -> None:
        file = self.files.open_files.get(self.files.log_path)
        if self.size + len(data) > self._allocated:
            # Reserving blocks ahead saves a fifth of the write time of a large file.
            room = min(_ALLOCATE_AHEAD, max(self._max_bytes - self.size, len(data)))
            file.allocate(self.size, room)
            self._allocated = self.size + room
        try:
            file.pwrite((data,), self.size)
        except OSError:
            self._truncate_remains()
            raise

    def _truncate_remains(self) -> None:
        """Remove what a failed write left; if that fails too, the next write overwrites it."""
        try:
            self.files.file(LOG).truncate(self.size)
        except OSError as error:
            logger.warning(
                "%s: cannot truncate the remains of a failed write: %s", self.files.log_path, error
            )

    def _account(self, size: int, last_offset: int, max_timestamp: int) -> None:
        position = self.size
        if position == 0:
            self._first_timestamp = max_timestamp
        largest = self._largest or self.largest()
        if max_timestamp > largest.timestamp:
            self._largest = largest = TimeOffset(max_timestamp, last_offset)
        if self._bytes_since_index_entry > self._index_interval_bytes:
            self._add_index_entry(last_offset, position, largest)
            self._bytes_since_index_entry = 0
        self._bytes_since_index_entry += size
        self.size = position + size

    def _add_index_entry(self, last_offset: int, position: int, largest: TimeOffset) -> None:
        """Index a batch that is already written; a missing entry only makes searches longer."""
        try:
            self.offset_index.append(last_offset, position)
            self.time_index.append(*largest)
            limit = self._max_index_bytes
            self.index_full = self.offset_index.is_full(limit) or self.time_index.is_full(limit)
        except OSError as error:
            logger.warning("%s: cannot index offset %d: %s", self.files.log_path, last_offset, error)

    def index_batch(self, header: BatchHeader, position: int) -> None:
        """Index a batch found in the file, as if it had been appended; recovery walks the file this way."""
        self.size = position
        self._account(header.size_in_bytes, header.last_offset, header.max_timestamp)

    def reset_indexes(self, *, transactions: bool) -> None:
        self.offset_index.reset()
        self.time_index.reset()
        if transactions:
            self.txn_index.reset()
        self._bytes_since_index_entry = 0
        self._largest = TimeOffset(NO_TIMESTAMP, self.base_offset)
        self._first_timestamp = None
        self.index_full = False

    def mark_verified(self) -> None:
        """Skip checksums in later reads: every batch was verified just now."""
        self.reader = SegmentReader(self.files, self.offset_index, trusted_from=0)

    def cut_to(self, size: int) -> None:
        """Truncate the `.log` at a batch boundary; the caller adjusts the indexes."""
        if self.reader.mapped:
            self._copy_prefix(size)
        else:
            self.files.file(LOG).truncate(size)
        self.size = size
        self.reader = SegmentReader(self.files, self.offset_index, trusted_from=size)

    def _copy_prefix(self, size: int) -> None:
        disk, source = self.files.open_files.disk, self.files.file(LOG)
        path = self.files.log_path + TRUNCATED
        copy = disk.open(path, create=True)
        copy.truncate(0)
        for position in range(0, size, SCAN_BLOCK):
            copy.pwrite((source.pread(min(SCAN_BLOCK, size - position), position),), position)
        copy.sync()
        copy.close()
        disk.rename(path, self.files.log_path)
        self.files.open_files.forget(self.files.log_path)

    def truncate_to(self, offset: int) -> None:
        """Remove the batch that holds `offset` and all later ones; the segment may grow again afterwards."""
        position = self.position_of(offset)
        self.offset_index.truncate_to(offset)
        self.time_index.truncate_to(offset)
        self.txn_index.truncate_to(offset)
        self.cut_to(self.size if position is None else position)
        self._bytes_since_index_entry = 0
        self.index_full = False
        if self.size == 0:
            self._first_timestamp = None
        self._largest = self._find_largest()

    def _find_largest(self) -> TimeOffset:
        largest = self.time_index.last()
        for batch in self.batches(self.offset_index.lookup(largest.offset).position):
            if batch.header.max_timestamp > largest.timestamp:
                largest = TimeOffset(batch.header.max_timestamp, batch.header.last_offset)
        return largest

    def finish(self) -> None:
        """Close the segment for appends: complete the indexes with the last time index entry."""
        if self._largest is not None:
            self.time_index.append(*self._largest)
        if self._allocated > max(self.size, _ALLOCATE_FROM):
            self.files.file(LOG).truncate(self.size)
            self._allocated = _ALLOCATE_FROM
        self.offset_index.write()
        self.time_index.write()
        self.txn_index.write()
        self.reader.closed = True

    def resume(self) -> None:
        """Undo `finish`: this is the active segment again and may grow."""
        self.reader.closed = False
        self._largest = self.largest()

    def flush(self) -> None:
        """Sync the files. The indexes of a segment that still grows are not worth a sync."""
        self.files.file(LOG).sync()
        self.txn_index.sync()
        if self.reader.closed:
            self.offset_index.sync()
            self.time_index.sync()

    def batches(self, position: int = 0, end: int | None = None) -> Iterator[StoredBatch]:
        """Iterate over the batches from `position` on without verifying checksums.

        Raises `CorruptBatch` where the bytes cannot be a batch.
        """
        return self.reader.scan(position, self.size if end is None else end)

    def position_of(self, offset: int) -> int | None:
        """Return the position of the first batch that ends at or after `offset`; None if all end before."""
        return self.reader.position_of(offset, self.size)

    def next_offset(self) -> int:
        """Return the offset after the last batch, scanning from the last indexed batch."""
        next_offset = self.base_offset
        for batch in self.batches(self.offset_index.last().position):
            next_offset = batch.header.next_offset
        return next_offset

    def largest(self) -> TimeOffset:
        """The largest timestamp (-1: none) with the last offset of its batch."""
        if self._largest is None:
            self._largest = self.time_index.last()
        return self._largest

    def largest_timestamp(self) -> int:
        """The largest timestamp of the records, or the file's modification time if no record has one."""
        timestamp = self.largest().timestamp
        return timestamp if timestamp >= 0 else self.files.modified_ms()

    def first_batch_timestamp(self) -> int | None:
        """The largest timestamp of the first batch, which `segment.ms` counts from; -1 if it is damaged."""
        if self._first_timestamp is None and self.size:
            try:
                self._first_timestamp = next(self.reader.scan(0, self.size)).header.max_timestamp
            except CorruptBatch:
                # Reads report the damage; the age of the file is used instead.
                self._first_timestamp = NO_TIMESTAMP
        return self._first_timestamp

    def age_ms(self, now_ms: int, max_timestamp: int) -> int:
        """Time since the first batch, by record timestamps if it has one, else by the clock."""
        first = self._first_timestamp
        if first is None:
            first = self.first_batch_timestamp()
        if first is not None and first >= 0:
            return max_timestamp - first
        return now_ms - self.created_ms

    def index_sizes(self) -> tuple[int, int]:
        """Bytes of the offset index and of the time index."""
        return len(self.offset_index) * OffsetIndex.ENTRY_SIZE, len(self.time_index) * TimeIndex.ENTRY_SIZE
