"""How a log grows: what leaders and followers append.

What a client sends is checked (`validation`, `producer_state`), gets its offsets and leader epoch written
into the bytes it came in, and goes to the active segment in one write. Nothing is done per record, and
nothing changes before the write has succeeded, so an append that fails has not happened.

Consumers read below the high watermark; those that want only committed transactions, below the last stable
offset: where the oldest transaction begins that is open, or whose end is not below the high watermark yet.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from moldau.base.clock import Clock
from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import Randomness
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
from moldau.storage.disk.disk import Buffer
from moldau.storage.disk.open_files import OpenFiles
from moldau.storage.log.append_info import AppendInfo, Origin, UnexpectedOffset
from moldau.storage.log.config import LogConfig
from moldau.storage.log.files import LoadedLog, LogFiles, Place
from moldau.storage.log.validation import Validation
from moldau.storage.producers.end_marker import read_end_marker
from moldau.storage.producers.restore import apply_to_producers
from moldau.storage.producers.state import ProducedBatch
from moldau.storage.producers.verification import NOT_REQUIRED, Guard
from moldau.storage.segment.segment import Segment, StoredBatch

logger = logging.getLogger(__name__)

#: Looking into a smaller batch takes less time than the way to the pool and back.
_OFFLOAD_BYTES = 4096


class GrowingLog(LogFiles):
    __slots__ = ("_high_watermark", "_validation", "first_unstable_offset")

    def __init__(
        self,
        files: OpenFiles,
        clock: Clock,
        randomness: Randomness | None,
        place: Place,
        config: LogConfig,
        loaded: LoadedLog,
    ) -> None:
        super().__init__(files, clock, randomness, place, config, loaded)
        self._high_watermark = self.log_start_offset
        self._validation = Validation(self.topic_partition, config)
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
        guard: Guard | None = NOT_REQUIRED,
        transaction_version: int = 0,
    ) -> AppendInfo:
        """Check, number and write. Raises `KafkaError` with the code the producer is to see.

        Offsets and epoch are written into `records` itself if it is writable. A batch of an idempotent
        producer that is here already is not written again: its first offsets are given back, marked
        `duplicate`. The first batch of a transaction needs the `guard` its verification began with; markers
        are checked by the `transaction_version` of the transaction they end.
        """
        now_ms = self._clock.time_ms()
        if origin is not Origin.CLIENT:
            limited = origin is not Origin.RAFT_LEADER
            return self._append_trusted(
                records, leader_epoch, now_ms, limited=limited, transaction_version=transaction_version
            )
        validation = self._validation
        header = validation.client_batch(records)
        if not prepared:
            validation.check_client(records, header, now_ms)
            if validation.opens and validation.must_open(header):
                records = validation.open_batch(records, header)
                header = read_batch_header(records)
        if header.producer_id >= 0:
            duplicate = self.producer_state.check(header, from_client=True, guard=guard)
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
        self, records: Buffer, leader_epoch: int, now_ms: int, *, limited: bool, transaction_version: int
    ) -> AppendInfo:
        """What the node's own parts write: any number of batches, control batches too, all or nothing."""
        batches = self._whole_batches(records)
        for _, header in batches:
            if limited:
                self._validation.check_size(header.size_in_bytes)
        buffer = _writable(records)
        self._check_producers(buffer, batches, transaction_version)
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
        if any(header.records_count != header.last_offset_delta + 1 for _, header in batches):
            raise KafkaError(ErrorCode.INVALID_RECORD, f"{self.topic_partition}: records without offsets")
        return batches

    def _check_producers(
        self,
        buffer: bytearray | memoryview,
        batches: Sequence[tuple[int, BatchHeader]],
        transaction_version: int,
    ) -> None:
        for position, header in batches:
            if header.producer_id < 0:
                continue
            if not header.is_control:
                self.producer_state.check(header, from_client=False)
            elif marker := read_end_marker(memoryview(buffer)[position:], header):
                self.producer_state.check_marker(header, marker, transaction_version)

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
