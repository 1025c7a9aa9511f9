"""How a segment of a log grows, is closed, and is cut.

An offset index entry is due for the first batch that begins more than `index.interval.bytes` behind the last
indexed one; a time index entry goes with it.

Only the last segment of a log grows. `finish` closes it: the indexes are completed, and from then on it may
be mapped. A segment that is cut after it was mapped (a follower truncates) is copied first, because touching
a mapped page behind the end of its file kills the process.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from moldau.protocol.records import BatchHeader
from moldau.storage.disk.disk import Buffer
from moldau.storage.disk.open_files import OpenFiles
from moldau.storage.log.config import LogConfig
from moldau.storage.segment.files import KINDS, LOG, OFFSET_INDEX, TIME_INDEX, TRUNCATED, SegmentFiles
from moldau.storage.segment.index import NO_TIMESTAMP, TimeOffset
from moldau.storage.segment.reader import SCAN_BLOCK, SegmentRead, SegmentReader, StoredBatch
from moldau.storage.segment.stored import ALLOCATE_FROM, StoredSegment
from moldau.storage.segment.txn_index import AbortedTransaction

__all__ = ["MAX_RELATIVE_OFFSET", "Segment", "SegmentRead", "StoredBatch"]

MAX_RELATIVE_OFFSET = 2**31 - 1
_ALLOCATE_AHEAD = 16 * 1024 * 1024

logger = logging.getLogger(__name__)


class Segment(StoredSegment):
    __slots__ = ()

    @classmethod
    def create(
        cls,
        files: OpenFiles,
        directory: str,
        base_offset: int,
        config: LogConfig,
        *,
        now_ms: int,
        suffix: str = "",
    ) -> Segment:
        """A new, empty segment; leftovers of the same name go. `suffix` is `.cleaned` for the cleaner.

        The `.log` comes last: what fails on the way there has not made a segment that a restart would find.
        """
        paths = SegmentFiles(files, directory, base_offset, suffix)
        for kind in KINDS:
            files.disk.remove(paths.path(kind))
            files.forget(paths.path(kind))
        for kind in (OFFSET_INDEX, TIME_INDEX):
            files.disk.open(paths.path(kind), create=True).close()
        segment = cls(paths, config, size=0, created_ms=now_ms, new=True)
        log = files.disk.open(paths.path(LOG), create=True)
        if config.preallocate:
            log.allocate(0, config.segment_bytes)
            segment._allocated = config.segment_bytes
        log.close()
        return segment

    def append_batch(self, data: Buffer, last_offset: int, max_timestamp: int) -> None:
        """Write one batch at the end and keep the indexes. On `OSError` everything is as it was before."""
        self._write(data)
        self._note(len(data), last_offset, max_timestamp)

    def append(self, data: Buffer, headers: Sequence[BatchHeader]) -> None:
        """Write several batches at once; `headers` are theirs, in order, with their final offsets."""
        self._write(data)
        for header in headers:
            self._note(header.size_in_bytes, header.last_offset, header.max_timestamp)

    def append_aborted(self, transaction: AbortedTransaction) -> None:
        self.txn_index.append(transaction)

    def _write(self, data: Buffer) -> None:
        file = self._files.files.get(self._log_path)
        if self.size + len(data) > self._allocated:
            # Blocks reserved ahead save a fifth of the time that writing takes; small logs do without.
            room = min(_ALLOCATE_AHEAD, max(self._max_bytes - self.size, len(data)))
            file.allocate(self.size, room)
            self._allocated = self.size + room
        try:
            file.pwrite((data,), self.size)
        except OSError:
            self._cut_remains()
            raise

    def _cut_remains(self) -> None:
        """Of a failed write; if that fails too they stay behind the end, and the next write covers them."""
        try:
            self._files.file(LOG).truncate(self.size)
        except OSError as error:
            logger.warning("%s: the end of a failed write cannot be cut off: %s", self._log_path, error)

    def _note(self, size: int, last_offset: int, max_timestamp: int) -> None:
        position = self.size
        if position == 0:
            self._first_timestamp = max_timestamp
        largest = self._largest or self.largest()
        if max_timestamp > largest.timestamp:
            self._largest = largest = TimeOffset(max_timestamp, last_offset)
        if self._since_index > self._interval:
            self._add_index_entry(last_offset, position, largest)
            self._since_index = 0
        self._since_index += size
        self.size = position + size

    def _add_index_entry(self, last_offset: int, position: int, largest: TimeOffset) -> None:
        """The batch is written and counts, whatever happens here; searches get longer without the entry."""
        try:
            self.offset_index.append(last_offset, position)
            self.time_index.append(*largest)
            limit = self._max_index_bytes
            self.index_full = self.offset_index.is_full(limit) or self.time_index.is_full(limit)
        except OSError as error:
            logger.warning("%s: offset %d is missing in an index: %s", self._log_path, last_offset, error)

    def index_batch(self, header: BatchHeader, position: int) -> None:
        """For recovery, which walks the file after `reset_indexes`: as if the batch had been appended."""
        self.size = position
        self._note(header.size_in_bytes, header.last_offset, header.max_timestamp)

    def reset_indexes(self, *, transactions: bool) -> None:
        self.offset_index.reset()
        self.time_index.reset()
        if transactions:
            self.txn_index.reset()
        self._since_index = 0
        self._largest = TimeOffset(NO_TIMESTAMP, self.base_offset)
        self._first_timestamp = None
        self.index_full = False

    def trust_all(self) -> None:
        """Every batch was verified just now."""
        self.reader = SegmentReader(self._files, self.offset_index, trusted_from=0)

    def cut_to(self, size: int) -> None:
        """Make the `.log` end at a batch boundary; the indexes are the caller's business."""
        if self.reader.mapped:
            self._copy_prefix(size)
        else:
            self._files.file(LOG).truncate(size)
        self.size = size
        self.reader = SegmentReader(self._files, self.offset_index, trusted_from=size)

    def _copy_prefix(self, size: int) -> None:
        disk, source = self._files.files.disk, self._files.file(LOG)
        path = self._log_path + TRUNCATED
        copy = disk.open(path, create=True)
        copy.truncate(0)
        for position in range(0, size, SCAN_BLOCK):
            copy.pwrite((source.pread(min(SCAN_BLOCK, size - position), position),), position)
        copy.sync()
        copy.close()
        disk.rename(path, self._log_path)
        self._files.files.forget(self._log_path)

    def truncate_to(self, offset: int) -> None:
        """Remove the batch that holds `offset` and all behind it; the segment may grow again afterwards."""
        position = self.reader.position_of(offset, self.size)
        self.offset_index.truncate_to(offset)
        self.time_index.truncate_to(offset)
        self.txn_index.truncate_to(offset)
        self.cut_to(self.size if position is None else position)
        self._since_index = 0
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
        """No more appends: complete the indexes, the last time index entry too."""
        if self._largest is not None:
            self.time_index.append(*self._largest)
        if self._allocated > max(self.size, ALLOCATE_FROM):
            self._files.file(LOG).truncate(self.size)
            self._allocated = ALLOCATE_FROM
        self.offset_index.write()
        self.time_index.write()
        self.txn_index.write()
        self.reader.closed = True

    def resume(self) -> None:
        """The opposite: this is the last segment again and may grow."""
        self.reader.closed = False
        self._largest = self.largest()

    def time_waited(self, now_ms: int, max_timestamp: int) -> int:
        """How long the first batch waits for the segment to be closed, by the time of the records if any."""
        first = self._first_timestamp
        if first is None:
            first = self.first_batch_timestamp()
        if first is not None and first >= 0:
            return max_timestamp - first
        return now_ms - self.created_ms
