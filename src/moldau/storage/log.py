"""One log: the records of one partition in one directory.

What clients and leaders send is checked (`validation`, `producer_state`), gets its offsets and leader epoch
written into the bytes it came in, and goes to the active segment in one write; nothing is done per record.
How the log lies on disk, rolls and is flushed is in `log_files`; opening one after whatever happened, in
`recovery`.

`log_start_offset` ≤ `high_watermark` ≤ `log_end_offset`; consumers read below the high watermark, and those
that want only committed transactions below the last stable offset.

The event loop owns a log. Only `read(blocking=True)`, the searches, `prepare`, `flush`, `check` and
`remove_deleted_files` may run in a thread while the loop goes on: they work on what they saw when they began,
and begin again if segments were taken away meanwhile. An `OSError` never leaves: it becomes `DiskFull`, after
which the log works on when there is room, or `LogDirectoryFailed`, after which the directory is lost.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from struct import error as StructError
from typing import NamedTuple, TypeVar

from moldau.base.clock import Clock
from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import Randomness, TopicPartition, Uuid, format_uuid
from moldau.protocol.records import (
    CREATE_TIME,
    LOG_APPEND_TIME,
    BatchHeader,
    CorruptBatch,
    check_crc,
    iter_batches,
    patch_batch,
    read_batch_header,
    set_max_timestamp,
)
from moldau.storage.append_info import AppendInfo, InvalidRecords, Origin, RecordError, UnexpectedOffset
from moldau.storage.disk import Buffer, Disk, WouldWait, storage_failure
from moldau.storage.log_config import LogConfig
from moldau.storage.log_files import LoadedLog, LogFiles
from moldau.storage.log_search import TimestampOffset, aborted_between, first_at_or_after, latest_by_time
from moldau.storage.markers import read_end_marker
from moldau.storage.open_files import OpenFiles
from moldau.storage.partition_metadata import read_topic_id, write_topic_id
from moldau.storage.producer_load import apply_to_producers, restore_producers
from moldau.storage.producer_state import ProducedBatch
from moldau.storage.recovery import Recovery
from moldau.storage.retention import expired_segments
from moldau.storage.segment import Segment, StoredBatch
from moldau.storage.segment_list import SegmentList
from moldau.storage.txn_index import AbortedTransaction
from moldau.storage.validation import Validation

__all__ = [
    "AbortedTransaction",
    "AppendInfo",
    "InvalidRecords",
    "Log",
    "Origin",
    "ReadResult",
    "RecordError",
    "TimestampOffset",
    "UnexpectedOffset",
]

logger = logging.getLogger(__name__)

T = TypeVar("T")

#: Looking into a smaller batch takes less time than the way to the pool and back.
_OFFLOAD_BYTES = 4096


class ReadResult(NamedTuple):
    """Whole batches of one segment. `parts` is empty when nothing below the upper bound is at that offset."""

    parts: list[memoryview]
    size: int
    first_offset: int
    next_offset: int
    segment_base: int
    position: int


class Log(LogFiles):
    __slots__ = ("_high_watermark", "_reported_damage", "_validation", "first_unstable_offset")

    @classmethod
    def open(
        cls,
        disk: Disk,
        clock: Clock,
        directory: str,
        topic_partition: TopicPartition,
        topic_id: Uuid | None,
        config: LogConfig,
        *,
        recovery_point: int = 0,
        log_start_offset: int = 0,
        clean_shutdown: bool = False,
        producer_expiration_ms: int = 86_400_000,
        files: OpenFiles | None = None,
        randomness: Randomness | None = None,
    ) -> Log:
        """Open or create a log, the folder too, with recovery unless the shutdown was clean. Blocking.

        A `topic_id` is written to `partition.metadata` if that is missing; another id there is an error; None
        takes what is there. Without `randomness` there is no `segment.jitter.ms`.
        """
        files = files or OpenFiles(disk)
        try:
            disk.makedirs(directory)
            stored_id = _stored_topic_id(disk, directory, topic_id)
            loaded = Recovery(
                files,
                directory,
                topic_partition,
                config,
                recovery_point=recovery_point,
                log_start_offset=log_start_offset,
                clean_shutdown=clean_shutdown,
                producer_expiration_ms=producer_expiration_ms,
                now_ms=clock.time_ms(),
            ).load()
            if topic_id is not None and stored_id is None:
                write_topic_id(disk, directory, topic_id)
        except OSError as error:
            raise storage_failure(error, directory) from error
        return cls(
            files,
            clock,
            randomness,
            directory,
            topic_partition,
            stored_id or topic_id,
            config,
            loaded,
            topic_id_unsynced=stored_id is None and topic_id is not None,
        )

    def __init__(
        self,
        files: OpenFiles,
        clock: Clock,
        randomness: Randomness | None,
        directory: str,
        topic_partition: TopicPartition,
        topic_id: Uuid | None,
        config: LogConfig,
        loaded: LoadedLog,
        *,
        topic_id_unsynced: bool,
    ) -> None:
        super().__init__(
            files,
            clock,
            randomness,
            directory,
            topic_partition,
            topic_id,
            config,
            loaded,
            topic_id_unsynced=topic_id_unsynced,
        )
        self._high_watermark = self.log_start_offset
        self._reported_damage = ""
        self._validation = Validation(topic_partition, config)
        self.first_unstable_offset = self.producer_state.first_unstable_offset()

    def update_config(self, config: LogConfig) -> None:
        self.config = config
        self._validation = Validation(self.topic_partition, config)

    @property
    def local_log_start_offset(self) -> int:
        """The first offset on this disk; the same as the log start, as there is no tiered storage."""
        return self.log_start_offset

    @property
    def high_watermark(self) -> int:
        return self._high_watermark

    @high_watermark.setter
    def high_watermark(self, offset: int) -> None:
        """Kept between log start and log end, and never lowered; truncation does that itself."""
        offset = min(offset, self.log_end_offset)
        if offset > self._high_watermark:
            self._high_watermark = offset
            if self.first_unstable_offset is not None:
                self._settle_transactions(offset)

    @property
    def last_stable_offset(self) -> int:
        """The high watermark, or the beginning of the first transaction below it that is not decided."""
        unstable = self.first_unstable_offset
        return self._high_watermark if unstable is None else min(unstable, self._high_watermark)

    def _settle_transactions(self, offset: int) -> None:
        self.producer_state.forget_replicated(offset)
        unstable = self.producer_state.first_unstable_offset()
        self.first_unstable_offset = None if unstable is None else max(unstable, self.log_start_offset)

    def needs_offload(self, records: Buffer) -> bool:
        """Must these records be recompressed or looked into, at a length that would hold up the loop?"""
        if not self._validation.opens or len(records) < _OFFLOAD_BYTES:
            return False
        try:
            return self._validation.must_open(read_batch_header(records))
        except CorruptBatch:
            return False

    def prepare(self, records: Buffer) -> Buffer:
        """In the pool: validate and recompress; the result goes to `append_as_leader(..., prepared=True)`."""
        validation = self._validation
        header = validation.client_batch(records)
        validation.check_client(records, header, self._clock.time_ms())
        return validation.open_batch(records, header)

    def append_as_leader(
        self,
        records: Buffer,
        leader_epoch: int,
        *,
        origin: Origin = Origin.CLIENT,
        prepared: bool = False,
    ) -> AppendInfo:
        """Check, number and write. Raises `KafkaError` with the code the producer is to see.

        Offsets and epoch are written into `records` itself if it is writable. A batch of an idempotent
        producer that is here already is not written again: its first offsets are given back, marked
        `duplicate`.
        """
        now_ms = self._clock.time_ms()
        if origin is not Origin.CLIENT:
            limited = origin is not Origin.RAFT_LEADER
            return self._append_trusted(records, leader_epoch, now_ms, limited=limited)
        validation = self._validation
        header = validation.client_batch(records)
        if not prepared:
            validation.check_client(records, header, now_ms)
            if validation.opens and validation.must_open(header):
                records = validation.open_batch(records, header)
                header = read_batch_header(records)
        if header.producer_id >= 0:
            duplicate = self.producer_state.check(header, from_client=True)
            if duplicate is not None:
                return self._duplicate(duplicate)
        size = header.size_in_bytes
        batch = _writable(records if len(records) == size else memoryview(records)[:size])
        return self._append_batch(batch, header, leader_epoch, now_ms)

    def _duplicate(self, batch: ProducedBatch) -> AppendInfo:
        first, last, time = batch.first_offset, batch.last_offset, batch.timestamp
        return AppendInfo(first, last, time, time, self.log_start_offset, True, 0)

    def _append_batch(
        self, batch: bytearray | memoryview, header: BatchHeader, leader_epoch: int, now_ms: int
    ) -> AppendInfo:
        """The hot path: one batch, one write."""
        base_offset = self.log_end_offset
        last_offset = base_offset + header.last_offset_delta
        patch_batch(batch, 0, base_offset, leader_epoch)
        append_time = -1
        if self._validation.log_append_time:
            append_time = now_ms
            set_max_timestamp(batch, 0, header, LOG_APPEND_TIME, now_ms)
            header = header._replace(max_timestamp=now_ms)
        elif header.timestamp_type != CREATE_TIME:
            set_max_timestamp(batch, 0, header, CREATE_TIME, header.max_timestamp)
        size, max_timestamp = len(batch), header.max_timestamp
        segment = self._segment_for(size, base_offset, last_offset, max_timestamp, now_ms)
        try:
            segment.append_batch(batch, last_offset, max_timestamp)
        except OSError as error:
            raise self._failure(error) from error
        if leader_epoch != self.leader_epochs.latest:
            self.leader_epochs.assign(leader_epoch, base_offset)
        self._move_end(last_offset + 1, segment)
        if header.producer_id >= 0:
            self.producer_state.update(header, base_offset)
            if header.is_transactional:
                self._settle_transactions(self._high_watermark)
        return AppendInfo(
            base_offset, last_offset, max_timestamp, append_time, self.log_start_offset, False, size
        )

    def _segment_for(
        self, size: int, first_offset: int, last_offset: int, max_timestamp: int, now_ms: int
    ) -> Segment:
        """The active segment, a new one if these bytes should not go into the present one."""
        segment = self._list.active
        if size > self.config.segment_bytes:
            self._validation.check_fits_segment(size)
        if self._must_roll(segment, size, last_offset, max_timestamp, now_ms):
            segment = self.roll(first_offset)
        return segment

    def _move_end(self, offset: int, segment: Segment) -> None:
        self._end = (offset, segment, segment.size)
        self.log_end_offset = offset

    def _append_trusted(
        self, records: Buffer, leader_epoch: int, now_ms: int, *, limited: bool
    ) -> AppendInfo:
        """What the node's own parts write: any number of batches, control batches too, all or nothing."""
        batches = self._whole_batches(records)
        for _, header in batches:
            if limited:
                self._validation.check_size(header.size_in_bytes)
        buffer = _writable(records)
        self._check_producers(buffer, batches)
        if len(batches) == 1 and not batches[0][1].is_control:
            return self._append_batch(buffer, batches[0][1], leader_epoch, now_ms)
        offset = self.log_end_offset
        stored: list[StoredBatch] = []
        for position, header in batches:
            patch_batch(buffer, position, offset, leader_epoch)
            if self._validation.log_append_time:
                set_max_timestamp(buffer, position, header, LOG_APPEND_TIME, now_ms)
            size = header.size_in_bytes
            stored.append(_stored(buffer, position, size))
            offset += header.last_offset_delta + 1
        return self._append_stored(buffer, stored, now_ms)

    def _whole_batches(self, records: Buffer) -> list[tuple[int, BatchHeader]]:
        try:
            batches = list(iter_batches(records))
        except CorruptBatch as error:
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"{self.topic_partition}: {error}") from error
        if sum(header.size_in_bytes for _, header in batches) != len(records) or not batches:
            raise KafkaError(ErrorCode.INVALID_RECORD, f"{self.topic_partition}: not whole record batches")
        return batches

    def _check_producers(
        self, buffer: bytearray | memoryview, batches: Sequence[tuple[int, BatchHeader]]
    ) -> None:
        for position, header in batches:
            if header.producer_id < 0:
                continue
            if not header.is_control:
                self.producer_state.check(header, from_client=False)
            elif marker := read_end_marker(memoryview(buffer)[position:], header):
                self.producer_state.check_marker(header, marker)

    def _append_stored(self, data: Buffer, batches: Sequence[StoredBatch], now_ms: int) -> AppendInfo:
        """Write batches that have their final offsets, in one write, and account for them."""
        first, last = batches[0].header, batches[-1].header
        max_timestamp = max(batch.header.max_timestamp for batch in batches)
        first_offset, last_offset = first.base_offset, last.last_offset
        segment = self._segment_for(len(data), first_offset, last_offset, max_timestamp, now_ms)
        try:
            segment.append(data, [batch.header for batch in batches])
        except OSError as error:
            raise self._failure(error) from error
        self._move_end(last_offset + 1, segment)
        for batch in batches:
            header = batch.header
            if header.partition_leader_epoch > self.leader_epochs.latest:
                self.leader_epochs.assign(header.partition_leader_epoch, header.base_offset)
            aborted = apply_to_producers(self.producer_state, batch)
            if aborted is not None:
                segment.append_aborted(aborted)
        self._settle_transactions(self._high_watermark)
        append_time = now_ms if self._validation.log_append_time else -1
        return AppendInfo(
            first_offset, last_offset, max_timestamp, append_time, self.log_start_offset, False, len(data)
        )

    def append_as_follower(self, records: Buffer, leader_epoch: int | None = None) -> AppendInfo | None:
        """Batches of the leader with its offsets and epochs; None when there is no whole one.

        With the `leader_epoch` they were fetched in, batches of a later one are left out: they cannot be
        real.
        """
        batches = self._leader_batches(records, leader_epoch)
        if not batches:
            return None
        now_ms = self._clock.time_ms()
        first, last = batches[0].header, batches[-1].header
        size = batches[-1].position + last.size_in_bytes
        if size <= self.config.segment_bytes - self._list.active.size or len(batches) == 1:
            return self._append_stored(memoryview(records)[:size], batches, now_ms)
        for batch in batches:
            self._append_stored(batch.data, [batch], now_ms)
        max_timestamp = max(batch.header.max_timestamp for batch in batches)
        return AppendInfo(
            first.base_offset, last.last_offset, max_timestamp, -1, self.log_start_offset, False, size
        )

    def _leader_batches(self, records: Buffer, leader_epoch: int | None) -> list[StoredBatch]:
        view = memoryview(records)
        batches: list[StoredBatch] = []
        next_offset = self.log_end_offset
        try:
            for position, header in iter_batches(records):
                if leader_epoch is not None and header.partition_leader_epoch > leader_epoch:
                    logger.warning(
                        "%s: a batch of epoch %d from a leader of epoch %d",
                        self.topic_partition,
                        header.partition_leader_epoch,
                        leader_epoch,
                    )
                    break
                if not check_crc(records, position, header):
                    raise CorruptBatch("the checksum does not match")
                if header.base_offset < next_offset:
                    raise UnexpectedOffset(
                        f"{self.topic_partition}: offset {header.base_offset} after {next_offset - 1}",
                        header.base_offset,
                        header.last_offset,
                    )
                batches.append(
                    StoredBatch(position, header, view[position : position + header.size_in_bytes])
                )
                next_offset = header.next_offset
        except CorruptBatch as error:
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"{self.topic_partition}: {error}") from error
        return batches

    def read(
        self,
        offset: int,
        max_bytes: int,
        *,
        upper_bound: int,
        min_one_batch: bool = True,
        blocking: bool = False,
    ) -> ReadResult | None:
        """Whole batches from the one that holds `offset` on, below `upper_bound`, out of one segment.

        None only when `blocking` is False and the disk would have to be waited for. A first batch larger than
        `max_bytes` comes whole with `min_one_batch`. Damage is CORRUPT_MESSAGE, once it is the first thing to
        read.
        """
        if not self.log_start_offset <= offset <= self.log_end_offset:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"{self.topic_partition}: offset {offset} is not in {self.log_start_offset} to "
                f"{self.log_end_offset}",
            )
        try:
            return self._steadily(lambda: self._read(offset, max_bytes, upper_bound, min_one_batch, blocking))
        except WouldWait:
            return None

    def _read(
        self, offset: int, max_bytes: int, upper_bound: int, min_one_batch: bool, blocking: bool
    ) -> ReadResult:
        end_offset, active, active_size = self._end
        segments = self._list
        bound = min(upper_bound, end_offset)
        number = segments.floor(offset)
        while offset < bound and number < len(segments.items):
            segment = segments.items[number]
            if segment.base_offset >= bound:
                break
            if segment is active:
                end, size = end_offset, active_size
            else:
                end, size = segments.end_of(number, end_offset), segment.size
            found = segment.read(
                offset,
                max_bytes,
                size,
                upper_bound=bound if bound < end else None,
                end_offset=end,
                min_one_batch=min_one_batch,
                blocking=blocking,
            )
            if found is not None:
                parts = [found.data] if len(found.data) else []
                return ReadResult(
                    parts,
                    len(found.data),
                    found.first_offset,
                    found.next_offset,
                    segment.base_offset,
                    found.position,
                )
            number += 1
        return ReadResult([], 0, offset, offset, active.base_offset, active_size)

    def _steadily(self, look: Callable[[], T]) -> T:
        """Do it again if segments were cut or removed while it looked; in a thread, that can happen."""
        while True:
            generation = self._generation
            try:
                result = look()
            except CorruptBatch as error:
                if generation == self._generation:
                    self._report_damage(str(error))
                    raise KafkaError(ErrorCode.CORRUPT_MESSAGE, str(error)) from error
            except StructError:
                if generation == self._generation:
                    raise
            except OSError as error:
                if generation == self._generation:
                    raise self._failure(error) from error
            else:
                if generation == self._generation:
                    return result

    def _report_damage(self, message: str) -> None:
        """Once, however often clients come back for it."""
        if message != self._reported_damage:
            self._reported_damage = message
            logger.error("%s", message)

    def aborted_transactions(self, start: int, upper_bound: int) -> list[AbortedTransaction]:
        """What a reader of `[start, upper_bound)` that wants only committed records must leave out."""
        return self._steadily(lambda: aborted_between(self._list, start, upper_bound))

    def offset_for_timestamp(self, timestamp: int) -> TimestampOffset | None:
        """The first record at or after a time. Reads batches and may wait: run it in the pool."""
        return self._steadily(
            lambda: first_at_or_after(self._list, timestamp, self.log_start_offset, self.log_end_offset)
        )

    def offset_of_max_timestamp(self) -> TimestampOffset | None:
        """The record with the largest timestamp. Reads a batch and may wait: run it in the pool."""
        return self._steadily(lambda: latest_by_time(self._list))

    def end_offset_for_epoch(self, leader_epoch: int) -> tuple[int, int]:
        """The largest epoch known up to the asked one and where it ends; (-1, -1) when unknown."""
        return self.leader_epochs.end_offset_for(leader_epoch, self.log_end_offset)

    def delete_records_before(self, offset: int) -> int:
        """Move the log start up (-1: to the high watermark); gives back the log start.

        The segments below it go with the next `delete_old_segments`.
        """
        if offset == -1:
            offset = self._high_watermark
        if not 0 <= offset <= self._high_watermark:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"{self.topic_partition}: the log cannot start at {offset}, its high watermark is "
                f"{self._high_watermark}",
            )
        self._move_start(offset)
        return self.log_start_offset

    def _move_start(self, offset: int) -> None:
        if offset > self.log_start_offset:
            self.log_start_offset = offset
            self._high_watermark = max(self._high_watermark, offset)
            self.leader_epochs.truncate_from_start(offset)
            self._settle_transactions(max(offset, self._high_watermark))

    def delete_old_segments(self, now_ms: int) -> list[Segment]:
        """Retention by time, size and log start. Files become `.deleted`; see `remove_deleted_files`."""
        try:
            expired = expired_segments(
                self._list.items,
                self.config,
                now_ms=now_ms,
                log_start_offset=self.log_start_offset,
                log_end_offset=self.log_end_offset,
                high_watermark=self._high_watermark,
            )
            if not expired:
                return []
            if len(expired) == len(self._list.items):
                self.roll()
            remaining = self._list.with_changes(without=expired)
            self._move_start(remaining.items[0].base_offset)
            self._list = remaining
            self._discard(expired)
        except OSError as error:
            raise self._failure(error) from error
        return expired

    def truncate_to(self, offset: int) -> bool:
        """Remove everything at or behind an offset; was there anything?"""
        if offset >= self.log_end_offset:
            # A leader that never wrote may have left an epoch at the very end.
            self.leader_epochs.truncate_from_end(self.log_end_offset)
            return False
        if offset < self._list.items[0].base_offset:
            self.truncate_fully_and_start_at(offset)
            return True
        try:
            later = [segment for segment in self._list.items if segment.base_offset > offset]
            self._list = self._list.with_changes(without=later)
            self._discard(later)
            self._list.active.truncate_to(offset)
        except OSError as error:
            raise self._failure(error) from error
        self._after_truncation(offset, min(self.log_start_offset, offset))
        return True

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Remove everything and begin anew at an offset."""
        try:
            self._discard(self._list.items)
            new = Segment.create(
                self._files, self.directory, offset, self.config, now_ms=self._clock.time_ms()
            )
            self._list = SegmentList([new])
            self.leader_epochs.clear()
        except OSError as error:
            raise self._failure(error) from error
        self._after_truncation(offset, offset)

    def _after_truncation(self, offset: int, log_start_offset: int) -> None:
        self._generation += 1
        self.log_end_offset = offset
        self.log_start_offset = log_start_offset
        self._high_watermark = max(log_start_offset, min(self._high_watermark, offset))
        self.recovery_point = min(self.recovery_point, offset)
        self._begin_active(self._list.active)
        try:
            self.leader_epochs.truncate_from_end(offset)
            self.leader_epochs.write()
            restore_producers(
                self.producer_state,
                self._snapshots,
                self._list,
                log_start_offset,
                offset,
                self._clock.time_ms(),
            )
        except OSError as error:
            raise self._failure(error) from error
        self._settle_transactions(self._high_watermark)


def _writable(records: Buffer) -> bytearray | memoryview:
    """The same bytes where they can be written to; a copy if not."""
    if isinstance(records, bytearray):
        return records
    if isinstance(records, memoryview) and not records.readonly:
        return records
    return bytearray(records)


def _stored(buffer: bytearray | memoryview, position: int, size: int) -> StoredBatch:
    view = memoryview(buffer)[position : position + size]
    return StoredBatch(position, read_batch_header(view), view)


def _stored_topic_id(disk: Disk, directory: str, topic_id: Uuid | None) -> Uuid | None:
    try:
        stored = read_topic_id(disk, directory)
    except ValueError as error:
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error
    if stored is not None and topic_id is not None and stored != topic_id:
        raise KafkaError(
            ErrorCode.INCONSISTENT_TOPIC_ID,
            f"{directory} belongs to topic id {format_uuid(stored)}, not {format_uuid(topic_id)}",
        )
    return stored
