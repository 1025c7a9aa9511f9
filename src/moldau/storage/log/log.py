"""One log: the records of one partition in one directory.

A log is composed of its segments (`LogSegments`), its offsets (`LogOffsets`), leader epochs, the state of
producers, a `LogReader` and a `LogFlusher`. `Log` contains the operations that concern several of them:
opening, appending, rolling, deleting and truncating. `recovery` opens a directory after a crash.

An append is validated (`validation`, `ProducerState`), gets its offsets and leader epoch written into the
bytes it arrived in, and goes to the active segment in one write. Nothing is done per record, and nothing
changes before the write has succeeded: an append that fails has not happened.

The event loop owns a log. Only the `reader` (with `blocking=True`), `prepare`, `flusher.flush`,
`reader.check` and `segments.remove_deleted_files` may run in a thread meanwhile. No `OSError` leaves a log:
it becomes `DiskFull`, after which the log continues when there is room, or `LogDirectoryFailed`, after which
the directory is offline.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import NamedTuple

from moldau.base.clock import Clock
from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import Randomness, TopicPartition, Uuid
from moldau.protocol.records import (
    CREATE_TIME,
    LOG_APPEND_TIME,
    BatchHeader,
    CorruptBatch,
    patch_batch,
    read_batch_header,
    set_max_timestamp,
)
from moldau.storage.directories.partition_metadata import matching_topic_id, write_topic_id
from moldau.storage.disk.disk import Buffer, Disk, storage_failure
from moldau.storage.disk.open_files import OpenFiles
from moldau.storage.log.append import (
    AppendInfo,
    Origin,
    assign_offsets,
    check_producers,
    leader_batches,
    trusted_batches,
    writable,
)
from moldau.storage.log.config import LogConfig
from moldau.storage.log.flush import LogFlusher
from moldau.storage.log.leader_epochs import EpochEntry
from moldau.storage.log.offsets import LogOffsets
from moldau.storage.log.reader import LogReader
from moldau.storage.log.recovery import RecoveredLog, Recovery
from moldau.storage.log.retention import expired_segments, should_roll_for_copy
from moldau.storage.log.segments import LogSegments
from moldau.storage.log.validation import OpenedBatch, Validation
from moldau.storage.producers.restore import apply_to_producers, restore_producers
from moldau.storage.producers.snapshot import SnapshotEntry
from moldau.storage.producers.state import ProducedBatch
from moldau.storage.producers.verification import NOT_REQUIRED, Guard
from moldau.storage.segment.reader import StoredBatch
from moldau.storage.segment.segment import Segment

logger = logging.getLogger(__name__)


class RemoteTierState(NamedTuple):
    """The state for continuing at `next_offset`; all earlier records are in the remote tier."""

    next_offset: int
    log_start_offset: int
    epochs: Sequence[EpochEntry]
    producers: list[SnapshotEntry]


#: Validating a smaller batch takes less time than handing it to the thread pool.
_OFFLOAD_BYTES = 4096


class Log:
    """Callers use the parts directly: `segments`, `reader`, `flusher`, `leader_epochs`, `producer_state`."""

    __slots__ = (
        "_clock",
        "_opened_at",
        "_snapshots",
        "_validation",
        "config",
        "flusher",
        "highest_remote_offset",
        "leader_epochs",
        "offsets",
        "producer_state",
        "reader",
        "segments",
        "topic_id",
        "topic_partition",
    )

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
        """Open or create a log and its directory, with recovery unless the shutdown was clean. Blocking.

        A `topic_id` is written to `partition.metadata` if that is missing; a different id there raises
        INCONSISTENT_TOPIC_ID; None accepts the stored one.
        """
        files = files if files is not None else OpenFiles(disk)
        try:
            disk.makedirs(directory)
            stored_id = matching_topic_id(disk, directory, topic_id)
            recovered = Recovery(
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
        segments = LogSegments(
            files, clock, randomness, directory, config,
            recovered.segments, recovered.snapshots, recovered.log_end_offset,
        )  # fmt: skip
        # A process that was killed may have left unsynced files in the page cache.
        synced = clean_shutdown or recovery_point > 0
        return cls(
            clock, topic_partition, stored_id or topic_id, segments, recovered, directory_synced=synced
        )

    def __init__(
        self,
        clock: Clock,
        topic_partition: TopicPartition,
        topic_id: Uuid | None,
        segments: LogSegments,
        recovered: RecoveredLog,
        *,
        directory_synced: bool,
    ) -> None:
        self._clock = clock
        self.topic_partition = topic_partition
        self.topic_id = topic_id
        #: The offset up to which the remote tier has the local records; -1 if none, or it is not known yet.
        self.highest_remote_offset = -1
        self.config = segments.config
        self.segments = segments
        self.leader_epochs = recovered.epochs
        self.producer_state = recovered.producer_state
        self._snapshots = recovered.snapshots
        self.offsets = LogOffsets(segments, self.producer_state, recovered.log_start_offset)
        self._validation = Validation(topic_partition, segments.config)
        self.reader = LogReader(topic_partition, segments, self.offsets)
        self.flusher = LogFlusher(
            clock,
            segments,
            recovered.epochs,
            recovered.snapshots,
            recovery_point=recovered.recovery_point,
            has_topic_id=topic_id is not None,
            directory_synced=directory_synced,
        )
        flushed = recovered.recovery_point == segments.end_offset
        #: The end and the segments of a log that was opened completely flushed; None otherwise.
        self._opened_at = (segments.end_offset, segments.current) if flushed else None

    @property
    def directory(self) -> str:
        return self.segments.directory

    @property
    def log_start_offset(self) -> int:
        return self.offsets.log_start_offset

    @property
    def local_log_start_offset(self) -> int:
        """The first offset on this disk; equal to the log start offset without tiered storage."""
        return max(self.offsets.log_start_offset, self.segments.items[0].base_offset)

    @property
    def log_end_offset(self) -> int:
        return self.segments.end_offset

    @property
    def high_watermark(self) -> int:
        return self.offsets.high_watermark

    @high_watermark.setter
    def high_watermark(self, offset: int) -> None:
        self.offsets.advance_high_watermark(offset)

    @property
    def last_stable_offset(self) -> int:
        return self.offsets.last_stable_offset

    def update_config(self, config: LogConfig) -> None:
        self.config = self.segments.config = config
        self._validation = Validation(self.topic_partition, config)

    def needs_offload(self, records: Buffer) -> bool:
        """Whether the records must be recompressed or parsed, and are long enough to delay the event loop.

        Records of a topic with schema validation always are: the schema registry may have to be asked.
        """
        if not self._validation.opens:
            return False
        if len(records) < _OFFLOAD_BYTES and not self.config.validates_schemas:
            return False
        try:
            return self._validation.must_open(read_batch_header(records))
        except CorruptBatch:
            return False

    def prepare(self, records: Buffer) -> OpenedBatch:
        """Validate and recompress in a thread, for `append_as_leader(..., prepared=True)`."""
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
        """Validate, number and write. Raises `KafkaError` with the code for the producer.

        Offsets and epoch are written into `records` itself if it is writable. A batch that an idempotent
        producer sends again is not written again: its first offsets are returned, marked `duplicate`. The
        first batch of a transaction needs the `guard` of its verification (KIP-890); markers are checked by
        the `transaction_version` of the transaction they end.
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
                records = validation.open_batch(records, header).records
                header = read_batch_header(records)
        if header.producer_id >= 0:
            duplicate = self.producer_state.check(header, from_client=True, guard=guard)
            if duplicate is not None:
                return self._duplicate(duplicate)
        size = header.size_in_bytes
        batch = writable(records if len(records) == size else memoryview(records)[:size])
        return self._append_batch(batch, header, leader_epoch, now_ms)

    def _duplicate(self, batch: ProducedBatch) -> AppendInfo:
        first, last, time = batch.first_offset, batch.last_offset, batch.timestamp
        return AppendInfo(first, last, time, time, self.offsets.log_start_offset, True, 0)

    def _append_batch(
        self, batch: bytearray | memoryview, header: BatchHeader, leader_epoch: int, now_ms: int
    ) -> AppendInfo:
        """The hot path: one batch, one write."""
        base_offset = self.segments.end_offset
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
            raise self.segments.failure(error) from error
        if leader_epoch != self.leader_epochs.latest:
            self.leader_epochs.assign(leader_epoch, base_offset)
        self.segments.advance(last_offset + 1, segment)
        if header.producer_id >= 0:
            self.producer_state.update(header, base_offset)
            if header.is_transactional:
                self.offsets.update_first_unstable()
        log_start_offset = self.offsets.log_start_offset
        return AppendInfo(base_offset, last_offset, max_timestamp, append_time, log_start_offset, False, size)

    def _segment_for(
        self, size: int, first_offset: int, last_offset: int, max_timestamp: int, now_ms: int
    ) -> Segment:
        """The active segment, after a roll if these bytes must not go into the present one."""
        if size > self.config.segment_bytes:
            self._validation.check_fits_segment(size)
        if self.segments.must_roll(size, last_offset, max_timestamp, now_ms):
            return self.roll(first_offset)
        return self.segments.active

    def _append_trusted(
        self, records: Buffer, leader_epoch: int, now_ms: int, *, limited: bool, transaction_version: int
    ) -> AppendInfo:
        """Append what the node itself writes: any number of batches, also control batches, all or nothing."""
        batches = trusted_batches(self.topic_partition, records)
        for _, header in batches:
            if limited:
                self._validation.check_size(header.size_in_bytes)
        buffer = writable(records)
        check_producers(self.producer_state, buffer, batches, transaction_version)
        if len(batches) == 1 and not batches[0][1].is_control:
            return self._append_batch(buffer, batches[0][1], leader_epoch, now_ms)
        append_time = now_ms if self._validation.log_append_time else None
        stored = assign_offsets(buffer, batches, self.segments.end_offset, leader_epoch, append_time)
        return self._append_stored(buffer, stored, now_ms)

    def _append_stored(self, data: Buffer, batches: Sequence[StoredBatch], now_ms: int) -> AppendInfo:
        """Write batches that have their final offsets, in one write, and account for them."""
        first, last = batches[0].header, batches[-1].header
        max_timestamp = max(batch.header.max_timestamp for batch in batches)
        first_offset, last_offset = first.base_offset, last.last_offset
        segment = self._segment_for(len(data), first_offset, last_offset, max_timestamp, now_ms)
        try:
            segment.append(data, [batch.header for batch in batches])
        except OSError as error:
            raise self.segments.failure(error) from error
        self.segments.advance(last_offset + 1, segment)
        for batch in batches:
            header = batch.header
            if header.partition_leader_epoch > self.leader_epochs.latest:
                self.leader_epochs.assign(header.partition_leader_epoch, header.base_offset)
            aborted = apply_to_producers(self.producer_state, batch)
            if aborted is not None:
                segment.txn_index.append(aborted)
        self.offsets.update_first_unstable()
        append_time = now_ms if self._validation.log_append_time else -1
        return AppendInfo(
            first_offset, last_offset, max_timestamp, append_time, self.log_start_offset, False, len(data)
        )

    def append_as_follower(self, records: Buffer, leader_epoch: int | None = None) -> AppendInfo | None:
        """Append batches of the leader with its offsets and epochs; None if there is no whole batch.

        Batches of a later epoch than the `leader_epoch` they were fetched in are ignored: they cannot be
        real.
        """
        batches = leader_batches(self.topic_partition, records, self.segments.end_offset, leader_epoch)
        if not batches:
            return None
        now_ms = self._clock.time_ms()
        first, last = batches[0].header, batches[-1].header
        size = batches[-1].position + last.size_in_bytes
        if size <= self.config.segment_bytes - self.segments.active.size or len(batches) == 1:
            return self._append_stored(memoryview(records)[:size], batches, now_ms)
        for batch in batches:
            self._append_stored(batch.data, [batch], now_ms)
        max_timestamp = max(batch.header.max_timestamp for batch in batches)
        return AppendInfo(
            first.base_offset, last.last_offset, max_timestamp, -1, self.log_start_offset, False, size
        )

    def roll(self, base_offset: int = 0) -> Segment:
        """Close the active segment and begin a new one at the log end, or at `base_offset` if larger."""
        old = self.segments.active
        base = max(self.segments.end_offset, base_offset)
        if base == old.base_offset:
            return old
        new = self.segments.roll(base)
        self.flusher.retreat(old.base_offset)
        self.producer_state.end_offset = base
        try:
            self._save_producers(sync=False)
        except OSError as error:
            # A snapshot only shortens recovery.
            logger.warning("%s: cannot write the producer snapshot at %d: %s", self.directory, base, error)
        return new

    def _save_producers(self, *, sync: bool) -> None:
        state = self.producer_state
        latest = self._snapshots.latest
        if state.end_offset > (self.log_start_offset if latest is None else latest):
            self._snapshots.write(state.end_offset, state.to_snapshot(), sync=sync)

    def end_offset_for_epoch(self, leader_epoch: int) -> tuple[int, int]:
        """The largest known epoch up to `leader_epoch` and its end offset; (-1, -1) if unknown."""
        return self.leader_epochs.end_offset_for(leader_epoch, self.segments.end_offset)

    def delete_records_before(self, offset: int) -> int:
        """Raise the log start offset (-1: to the high watermark) and return it.

        `delete_old_segments` deletes the segments before it.
        """
        if offset == -1:
            offset = self.high_watermark
        if not 0 <= offset <= self.high_watermark:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"{self.topic_partition}: the log cannot start at {offset}, its high watermark is "
                f"{self.high_watermark}",
            )
        self._advance_start(offset)
        return self.log_start_offset

    def _advance_start(self, offset: int) -> None:
        if offset > self.log_start_offset:
            self.offsets.advance_start(offset)
            self.leader_epochs.truncate_from_start(offset)

    def save_leader_epochs(self) -> int:
        """Write the leader epochs; return 0. Blocking."""
        try:
            with self.flusher.lock:
                self.leader_epochs.write()
        except OSError as error:
            raise self.segments.failure(error) from error
        return 0

    @property
    def may_lose_epochs(self) -> bool:
        """Whether segments must stay for now: recovery could not restore the epochs of remote records."""
        return self.config.copies_to_remote and not self.leader_epochs.is_saved

    def delete_old_segments(self, now_ms: int) -> list[Segment]:
        """Apply retention by time, size and log start offset; return the segments that were deleted."""
        segments = self.segments
        if self.may_lose_epochs:
            return []
        try:
            if self.high_watermark == segments.end_offset and should_roll_for_copy(
                segments.active, self.config, now_ms
            ):
                self.roll()
            expired = expired_segments(
                segments.items,
                self.config,
                now_ms=now_ms,
                log_start_offset=self.log_start_offset,
                log_end_offset=segments.end_offset,
                high_watermark=self.high_watermark,
                highest_remote_offset=self.highest_remote_offset,
            )
            if not expired:
                return []
            if len(expired) == len(segments.items):
                self.roll()
            if not self.config.copies_to_remote:
                self._advance_start(segments.items[len(expired)].base_offset)
            segments.delete(expired)
        except OSError as error:
            raise segments.failure(error) from error
        return expired

    def truncate_to(self, offset: int) -> bool:
        """Remove everything at or after an offset; return whether there was anything."""
        segments = self.segments
        if offset >= segments.end_offset:
            # A leader that never wrote may have left an epoch that begins at the log end.
            self.leader_epochs.truncate_from_end(segments.end_offset)
            return False
        if offset < segments.items[0].base_offset:
            start = min(self.log_start_offset, offset) if self.config.tiered else None
            self.truncate_fully_and_start_at(offset, log_start_offset=start)
            return True
        try:
            with segments.changing():
                try:
                    segments.truncate_to(offset)
                finally:
                    # After the renames: a flush in a thread may sync the directory before them.
                    self.flusher.directory_synced = False
                self.offsets.truncate(min(self.log_start_offset, offset))
                self.flusher.retreat(offset)
            self._after_truncation()
        except OSError as error:
            raise segments.failure(error) from error
        return True

    def truncate_fully_and_start_at(self, offset: int, *, log_start_offset: int | None = None) -> None:
        """Remove everything and continue at an offset.

        With a `log_start_offset`, the records before the offset are in the remote tier, and the leader epochs
        before it are kept.
        """
        segments = self.segments
        try:
            with segments.changing():
                try:
                    segments.restart_at(offset)
                finally:
                    self.flusher.directory_synced = False
                self.offsets.truncate(offset if log_start_offset is None else log_start_offset)
                self.offsets.advance_high_watermark(offset)
                self.flusher.retreat(offset)
            if log_start_offset is None:
                self.leader_epochs.clear()
            self._after_truncation()
        except OSError as error:
            raise segments.failure(error) from error

    def remote_tier_state(self) -> RemoteTierState:
        """Return what another replica needs to begin at the local log start offset of this one."""
        start = self.local_log_start_offset
        epochs = [entry for entry in self.leader_epochs.entries if entry.start_offset < start]
        return RemoteTierState(start, self.log_start_offset, epochs, self._snapshots.load(start) or [])

    def producers_at(self, offset: int) -> list[SnapshotEntry]:
        """Return the producers of the snapshot taken when the segment at `offset` began. Blocking."""
        return self._snapshots.load(offset) or []

    def restart_from_remote(self, state: RemoteTierState) -> None:
        """Remove everything and continue after what is in the remote tier, with its epochs and producers."""
        offset, start = state.next_offset, state.log_start_offset
        self.truncate_fully_and_start_at(offset, log_start_offset=start)
        self.leader_epochs.clear()
        for epoch in state.epochs:
            self.leader_epochs.assign(epoch.epoch, epoch.start_offset)
        self.leader_epochs.truncate_from_start(start)
        self.producer_state.restore(state.producers, offset, self._clock.time_ms())
        self.producer_state.end_offset = offset
        try:
            with self.flusher.lock:
                self.leader_epochs.write()
            self._snapshots.write(offset, state.producers, sync=True)
        except OSError as error:
            raise self.segments.failure(error) from error
        self.offsets.update_first_unstable()

    def _after_truncation(self) -> None:
        start, end = self.log_start_offset, self.segments.end_offset
        self.leader_epochs.truncate_from_end(end)
        with self.flusher.lock:
            self.leader_epochs.write()
        now_ms = self._clock.time_ms()
        restore_producers(self.producer_state, self._snapshots, self.segments.current, start, end, now_ms)
        self.offsets.update_first_unstable()

    def rename_directory(self, directory: str) -> None:
        """Rename the directory: the topic is being deleted, or a moved replica takes over. Blocking."""
        with self.flusher.lock, self.segments.changing():
            self.segments.rename_directory(directory)
            self.flusher.directory_synced = False
            self.leader_epochs.move(directory)

    def close(self) -> None:
        """Sync everything for a clean shutdown, after which the next start needs no recovery. Blocking."""
        try:
            with self.flusher.lock:
                self._finish()
        except OSError as error:
            raise self.segments.failure(error) from error
        finally:
            self.segments.close_files()

    def _finish(self) -> None:
        if self._opened_at != (self.segments.end_offset, self.segments.current):
            self.producer_state.end_offset = self.segments.end_offset
            self._save_producers(sync=True)
            self.segments.active.finish()
            self.flusher.finish()
        elif not self.flusher.directory_synced:
            self.flusher.sync_directory_locked()
