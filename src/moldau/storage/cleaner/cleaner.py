"""Compaction of one log, independent of the process in which it runs.

First the keys of the dirty part are put into the offset map, as far as it has room. Then all segments up to
there are rewritten, several small ones into one: each group becomes a `.cleaned` segment, synced and with the
modification time of the last segment it replaces. The owner of the log replaces the old segments
(`LogSegments.replace`) before the next group begins, so that only one copied segment takes up disk space. A
crash leaves the old segments, or a `.swap` segment that is completed when the log is opened.

Only closed segments are read, and the checksum of every batch is verified: damage ends the job with a
`CorruptBatch` that names file and position.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from moldau.protocol.records import BatchHeader, batch_payload, check_crc
from moldau.storage.cleaner.filter import BatchFilter
from moldau.storage.cleaner.job import CleanedGroup, CleanJob, CleanResult
from moldau.storage.cleaner.offset_map import OffsetMap
from moldau.storage.cleaner.records import control_type, scan
from moldau.storage.cleaner.transactions import CleanedTransactions
from moldau.storage.disk.disk import Buffer, Disk
from moldau.storage.disk.open_files import OpenFiles
from moldau.storage.segment.files import CLEANED
from moldau.storage.segment.reader import StoredBatch, damaged
from moldau.storage.segment.segment import Segment

_MAX_OFFSETS_IN_SEGMENT = 2**31 - 1
_WRITE_BYTES = 256 * 1024

Throttle = Callable[[int], None]


def no_throttle(_bytes: int) -> None:
    """Do not throttle."""


class Cleaner:
    """One job. `groups()` does the work; `result` is complete when it is exhausted.

    `throttle` is called with all bytes read and written; it may sleep, or end the job by raising.
    """

    def __init__(self, disk: Disk, job: CleanJob, throttle: Throttle = no_throttle) -> None:
        self._files = OpenFiles(disk, limit=16)
        self._job = job
        self._throttle = throttle
        self._segments = [
            Segment.open(self._files, job.directory, base_offset, job.config) for base_offset in job.segments
        ]
        self.result = CleanResult(next_dirty_offset=job.first_dirty_offset)

    def groups(self) -> Iterator[CleanedGroup]:
        keys = self._index_keys()
        self.result.next_dirty_offset = keys.latest_offset + 1
        self.result.map_utilization = keys.utilization
        transactions = CleanedTransactions(self._job.aborted)
        batch_filter = BatchFilter(self._job, keys, transactions, self.result)
        for group in self._grouped(keys.latest_offset + 1):
            self._clean_group(group, batch_filter, transactions)
            yield CleanedGroup(group[0].base_offset, tuple(segment.base_offset for segment in group))

    def _index_keys(self) -> OffsetMap:
        job = self._job
        start = job.first_dirty_offset
        keys = OffsetMap(job.dedupe_buffer_size, job.load_factor, job.first_uncleanable_offset - start)
        keys.latest_offset = start - 1
        transactions = CleanedTransactions(item for item in job.aborted if item.last_offset >= start)
        bounds = [*job.segments[1:], job.first_uncleanable_offset]
        for segment, upper_bound in zip(self._segments, bounds, strict=True):
            if upper_bound > start:
                if not self._index_segment(segment, keys, transactions):
                    break
                # Offsets that are missing at the end of a segment are clean as well.
                keys.latest_offset = upper_bound - 1
        return keys

    def _index_segment(self, segment: Segment, keys: OffsetMap, transactions: CleanedTransactions) -> bool:
        """Index the keys of a segment; return whether the map had room for all of them."""
        start = self._job.first_dirty_offset
        position = segment.position_of(start) if start > segment.base_offset else 0
        if position is None:
            return True
        for batch in segment.batches(position):
            header = batch.header
            self._examine(segment, batch)
            self.result.map_bytes_read += header.size_in_bytes
            self.result.map_records_read += header.records_count
            if not self._index_batch(batch, keys, transactions):
                return False
            if header.last_offset >= start:
                keys.latest_offset = header.last_offset
        return True

    def _index_batch(self, batch: StoredBatch, keys: OffsetMap, transactions: CleanedTransactions) -> bool:
        header = batch.header
        if header.is_control:
            transactions.is_unneeded_marker(header, control_type(header, batch.data))
            return True
        if transactions.is_aborted(header):
            return True
        start, base_offset = self._job.first_dirty_offset, header.base_offset
        spans = scan(batch_payload(batch.data, header), header.records_count)
        entries = [(span[3], base_offset + span[2]) for span in spans]
        if base_offset < start:
            entries = [entry for entry in entries if entry[1] >= start]
        no_room_at = keys.put_all(entries)
        if no_room_at is not None:
            keys.latest_offset = no_room_at - 1
        return no_room_at is None

    def _grouped(self, end_offset: int) -> Iterator[list[Segment]]:
        """Group adjacent segments below `end_offset` that fit into one segment."""
        bounds = (*self._job.segments[1:], self._job.first_uncleanable_offset)
        group: list[Segment] = []
        totals = (0, 0, 0)
        for segment, upper_bound in zip(self._segments, bounds, strict=True):
            if segment.base_offset >= end_offset:
                break
            sizes = (segment.size, *segment.index_sizes())
            added = (totals[0] + sizes[0], totals[1] + sizes[1], totals[2] + sizes[2])
            if group and not self._fits(added, segment, upper_bound - 1 - group[0].base_offset):
                yield group
                group, added = [], sizes
            group.append(segment)
            totals = added
        if group:
            yield group

    def _fits(self, totals: tuple[int, int, int], segment: Segment, offset_range: int) -> bool:
        config = self._job.config
        if totals[0] > config.segment_bytes or max(totals[1:]) > config.segment_index_bytes:
            return False
        # Indexes hold offsets relative to the base in 31 bits; an empty segment has none.
        return segment.size == 0 or offset_range <= _MAX_OFFSETS_IN_SEGMENT

    def _clean_group(
        self, group: list[Segment], batch_filter: BatchFilter, transactions: CleanedTransactions
    ) -> None:
        job = self._job
        # Preallocated space would be wasted, as the size of the result is unknown.
        config = replace(job.config, preallocate=False)
        cleaned = Segment.create(
            self._files, job.directory, group[0].base_offset, config, now_ms=job.now_ms, suffix=CLEANED
        )
        output = _Output(cleaned)
        for segment in group:
            for batch in segment.batches():
                self._examine(segment, batch)
                self.result.bytes_read += batch.header.size_in_bytes
                retained = batch_filter.apply(batch.header, batch.data)
                if retained is not None:
                    self._throttle(len(retained[1]))
                    output.add(*retained)
        output.flush()
        self.result.bytes_written += cleaned.size
        for transaction in transactions.take_retained():
            cleaned.txn_index.append(transaction)
        cleaned.finish()
        cleaned.flush()
        cleaned.files.set_modified(group[-1].files.modified_ms())

    def _examine(self, segment: Segment, batch: StoredBatch) -> None:
        self._throttle(batch.header.size_in_bytes)
        if not check_crc(batch.data, 0, batch.header):
            raise damaged(segment.files.log_path, batch.position, "the checksum does not match")


class _Output:
    """Collects batches to write them in large blocks."""

    def __init__(self, segment: Segment) -> None:
        self._segment = segment
        self._headers: list[BatchHeader] = []
        self._parts: list[Buffer] = []
        self._pending = 0

    def add(self, header: BatchHeader, batch: Buffer) -> None:
        self._headers.append(header)
        self._parts.append(batch)
        self._pending += len(batch)
        if self._pending > _WRITE_BYTES:
            self.flush()

    def flush(self) -> None:
        if self._parts:
            self._segment.append(b"".join(self._parts), self._headers)
            self._headers, self._parts, self._pending = [], [], 0
