"""One log: the records of one partition in one directory.

In three layers: how it lies on disk, rolls and is flushed (`log_files`), how it grows (`log_append`), and
here how it is opened, read, and cut at either end. Opening one after whatever happened is the work of
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
from collections.abc import Callable
from struct import error as StructError
from typing import NamedTuple, TypeVar

from moldau.base.clock import Clock
from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import Randomness, TopicPartition, Uuid, format_uuid
from moldau.protocol.records import CorruptBatch
from moldau.storage.directories.partition_metadata import read_topic_id, write_topic_id
from moldau.storage.disk.disk import Disk, WouldWait, storage_failure
from moldau.storage.disk.open_files import OpenFiles
from moldau.storage.log.append import GrowingLog
from moldau.storage.log.append_info import AppendInfo, InvalidRecords, Origin, RecordError, UnexpectedOffset
from moldau.storage.log.config import LogConfig
from moldau.storage.log.files import LoadedLog, Place
from moldau.storage.log.recovery import Recovery
from moldau.storage.log.retention import expired_segments
from moldau.storage.log.search import TimestampOffset, aborted_between, first_at_or_after, latest_by_time
from moldau.storage.producers.restore import restore_producers
from moldau.storage.segment.list import SegmentList
from moldau.storage.segment.segment import Segment
from moldau.storage.segment.txn_index import AbortedTransaction

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


class ReadResult(NamedTuple):
    """Whole batches of one segment. `parts` is empty when nothing below the upper bound is at that offset."""

    parts: list[memoryview]
    size: int
    first_offset: int
    next_offset: int
    segment_base: int
    position: int


class Log(GrowingLog):
    __slots__ = ("_reported_damage",)

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
        files = files if files is not None else OpenFiles(disk)
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
        # A process that was killed may have left in the cache what it had not synced.
        synced = clean_shutdown or recovery_point > 0
        place = Place(directory, topic_partition, stored_id or topic_id, synced)
        return cls(files, clock, randomness, place, config, loaded)

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
        self._reported_damage = ""

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
        try:
            return self._steadily(lambda: self._read(offset, max_bytes, upper_bound, min_one_batch, blocking))
        except WouldWait:
            return None

    def _read(
        self, offset: int, max_bytes: int, upper_bound: int, min_one_batch: bool, blocking: bool
    ) -> ReadResult:
        if not self.log_start_offset <= offset <= self.log_end_offset:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"{self.topic_partition}: offset {offset} is not in {self.log_start_offset} to "
                f"{self.log_end_offset}",
            )
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
                if self._unchanged_since(generation):
                    self._report_damage(str(error))
                    raise KafkaError(ErrorCode.CORRUPT_MESSAGE, str(error)) from error
            except StructError:
                if self._unchanged_since(generation):
                    raise
            except OSError as error:
                if self._unchanged_since(generation):
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
            with self._changing():
                self._discard(expired)
                self._list = remaining
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
            # The last one first: a crash on the way leaves a log without gaps.
            later = [segment for segment in reversed(self._list.items) if segment.base_offset > offset]
            with self._changing():
                self._discard(later)
                self._list = self._list.with_changes(without=later)
                self._place_synced = False
                self._list.active.truncate_to(offset)
                self._set_bounds(min(self.log_start_offset, offset), offset)
            self._after_truncation()
        except OSError as error:
            raise self._failure(error) from error
        return True

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Remove everything and begin anew at an offset."""
        try:
            with self._changing():
                self._discard(self._list.items)
                self._place_synced = False
                new = self._begin_anew(offset)
                self._list = SegmentList([new])
                self._set_bounds(offset, offset)
            self.leader_epochs.clear()
            self._after_truncation()
        except OSError as error:
            raise self._failure(error) from error

    def _begin_anew(self, offset: int) -> Segment:
        """The one segment after all were discarded; they come back if it cannot be made."""
        now_ms = self._clock.time_ms()
        try:
            return Segment.create(self._files, self.directory, offset, self.config, now_ms=now_ms)
        except OSError:
            for segment in self._list.items:
                segment.change_suffix("")
            raise

    def _set_bounds(self, start: int, end: int) -> None:
        self.log_end_offset = end
        self.log_start_offset = start
        self._high_watermark = max(start, min(self._high_watermark, end))
        self._retreat(end)
        self._begin_active(self._list.active)

    def _after_truncation(self) -> None:
        start, end = self.log_start_offset, self.log_end_offset
        self.leader_epochs.truncate_from_end(end)
        with self._flush_lock:
            self.leader_epochs.write()
        now_ms = self._clock.time_ms()
        restore_producers(self.producer_state, self._snapshots, self._list, start, end, now_ms)
        self._settle_transactions(self._high_watermark)


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
