"""A segment as it lies on disk: its files, what is in them, and how old it is.

The first `size` bytes of the `.log` are whole batches with ascending offsets; bytes behind them may be the
remains of a failed write and are never read. How a segment grows and is cut is in `segment`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Self

from moldau.protocol.records import CorruptBatch
from moldau.storage.disk.open_files import OpenFiles
from moldau.storage.log.config import LogConfig
from moldau.storage.segment.files import LOG, OFFSET_INDEX, TIME_INDEX, SegmentFiles
from moldau.storage.segment.index import NO_TIMESTAMP, OffsetIndex, TimeIndex, TimeOffset
from moldau.storage.segment.reader import SegmentRead, SegmentReader, StoredBatch
from moldau.storage.segment.txn_index import TransactionIndex

#: Logs smaller than this get their blocks as they grow.
ALLOCATE_FROM = 4 * 1024 * 1024


class StoredSegment:
    __slots__ = (
        "_allocated",
        "_files",
        "_first_timestamp",
        "_interval",
        "_largest",
        "_log_path",
        "_max_bytes",
        "_max_index_bytes",
        "_since_index",
        "base_offset",
        "created_ms",
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
        self._files = files
        self._log_path = files.path(LOG)
        self.base_offset = files.base_offset
        self.size = size
        self.created_ms = created_ms
        self.roll_jitter_ms = 0
        self.offset_index = OffsetIndex(files, empty=new)
        self.time_index = TimeIndex(files, empty=new)
        self.txn_index = TransactionIndex(files, empty=new)
        self.index_full = False
        self.reader = SegmentReader(files, self.offset_index, trusted_from=size)
        self._interval = config.index_interval_bytes
        self._max_bytes = config.segment_bytes
        self._allocated = max(size, ALLOCATE_FROM)
        self._max_index_bytes = config.segment_index_bytes
        self._since_index = 0
        #: The largest timestamp with the last offset of its batch; from the time index when first asked.
        self._largest = TimeOffset(NO_TIMESTAMP, files.base_offset) if new else None
        self._first_timestamp: int | None = None

    @classmethod
    def open(
        cls, files: OpenFiles, directory: str, base_offset: int, config: LogConfig, *, suffix: str = ""
    ) -> Self:
        """A segment whose `.log` exists, taken to be closed. Reads nothing but its size."""
        paths = SegmentFiles(files, directory, base_offset, suffix)
        path = paths.path(LOG)
        size, modified_ms = files.disk.size(path), files.disk.modified_ms(path)
        segment = cls(paths, config, size=size, created_ms=modified_ms, new=False)
        segment.reader.closed = True
        return segment

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
        """See `SegmentReader.read`; `size` is how much of the segment the reader may see."""
        return self.reader.read(
            offset,
            max_bytes,
            size,
            upper_bound=upper_bound,
            end_offset=end_offset,
            min_one_batch=min_one_batch,
            blocking=blocking,
        )

    def batches(self, position: int = 0, end: int | None = None) -> Iterator[StoredBatch]:
        """The batches from `position` on, headers unchecked but for sense; `CorruptBatch` without it."""
        return self.reader.scan(position, self.size if end is None else end)

    def position_of(self, offset: int) -> int | None:
        """Where the batch begins that holds `offset` or is the first behind it; None: all end before it."""
        return self.reader.position_of(offset, self.size)

    def next_offset(self) -> int:
        """The offset behind the last batch, from the last indexed batch on."""
        next_offset = self.base_offset
        for batch in self.batches(self.offset_index.last().position):
            next_offset = batch.header.next_offset
        return next_offset

    def largest(self) -> TimeOffset:
        """The largest timestamp (-1: none) with the last offset of the batch that has it."""
        if self._largest is None:
            self._largest = self.time_index.last()
        return self._largest

    def largest_timestamp(self) -> int:
        """The largest timestamp of its records, or when the file was modified if no record has one."""
        timestamp = self.largest().timestamp
        return timestamp if timestamp >= 0 else self.modified_ms()

    def first_batch_timestamp(self) -> int | None:
        """The largest timestamp of the first batch, by which segments age; -1 when it is damaged."""
        if self._first_timestamp is None and self.size:
            try:
                self._first_timestamp = next(self.reader.scan(0, self.size)).header.max_timestamp
            except CorruptBatch:
                # Whoever reads it will say so; the age of the file has to do.
                self._first_timestamp = NO_TIMESTAMP
        return self._first_timestamp

    def index_sizes(self) -> tuple[int, int]:
        """Bytes of the offset index and of the time index."""
        return len(self.offset_index) * OffsetIndex.ENTRY_SIZE, len(self.time_index) * TimeIndex.ENTRY_SIZE

    def flush(self) -> None:
        """Wait for the disk. The indexes of a segment that still grows are not worth it."""
        self._files.file(LOG).sync()
        self.txn_index.sync()
        if self.reader.closed:
            self.offset_index.sync()
            self.time_index.sync()

    def path(self, kind: str) -> str:
        """The path of one of its files: `log`, `index`, `timeindex`, `txnindex`."""
        return self._files.path(kind)

    def paths(self) -> list[str]:
        """Those of its files that exist."""
        return self._files.existing()

    @property
    def suffix(self) -> str:
        return self._files.suffix

    def change_suffix(self, suffix: str) -> None:
        """Rename all its files, e.g. to `.deleted`."""
        self._files.rename(suffix)
        self._log_path = self._files.path(LOG)

    def forget(self) -> None:
        """Let go of the open files."""
        self._files.forget()

    def move(self, directory: str) -> None:
        """The folder was renamed."""
        self._files.directory = directory
        self._log_path = self._files.path(LOG)

    def modified_ms(self) -> int:
        return self._files.files.disk.modified_ms(self._log_path)

    def set_modified(self, time_ms: int) -> None:
        """For the cleaner: a cleaned segment keeps the time of what it replaces."""
        for kind in (LOG, OFFSET_INDEX, TIME_INDEX):
            self._files.files.disk.set_modified(self._files.path(kind), time_ms)
