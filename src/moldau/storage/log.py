"""One log: the records of one partition in one directory."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import NamedTuple

from moldau.base.clock import Clock
from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import Randomness, TopicPartition, Uuid
from moldau.storage.disk import Buffer, Disk
from moldau.storage.log_config import LogConfig
from moldau.storage.open_files import OpenFiles
from moldau.storage.segment import Segment


class Origin(enum.Enum):
    CLIENT = enum.auto()
    COORDINATOR = enum.auto()
    REPLICATION = enum.auto()
    RAFT_LEADER = enum.auto()


class RecordError(NamedTuple):
    batch_index: int
    message: str


class InvalidRecords(KafkaError):
    """Records inside a batch break a rule of the topic; tells which ones."""

    def __init__(self, code: ErrorCode, message: str, record_errors: Sequence[RecordError]) -> None:
        super().__init__(code, message)
        self.record_errors = tuple(record_errors)


class AppendInfo(NamedTuple):
    first_offset: int
    last_offset: int
    max_timestamp: int
    log_append_time: int
    log_start_offset: int
    duplicate: bool
    size: int


class ReadResult(NamedTuple):
    """Whole batches of one segment. `parts` may be empty: nothing below the upper bound at that offset."""

    parts: list[memoryview]
    size: int
    first_offset: int
    next_offset: int
    segment_base: int
    position: int


class TimestampOffset(NamedTuple):
    timestamp: int
    offset: int
    leader_epoch: int


class AbortedTransaction(NamedTuple):
    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class Log:
    """Owned by the event loop. From pool threads only `read(blocking=True)`, the searches by time, `flush`,
    `check`, `prepare` and `remove_deleted_files` may be called while the loop goes on."""

    topic_partition: TopicPartition
    topic_id: Uuid | None
    directory: str
    config: LogConfig
    log_start_offset: int
    local_log_start_offset: int
    log_end_offset: int
    recovery_point: int
    segments: Sequence[Segment]  # ascending, replaced as a whole at every change; the last is the active one
    first_unstable_offset: int | None

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
        """Open or create (the folder too), running recovery unless the shutdown was clean. Blocking.

        `topic_id` is written to `partition.metadata` if that is missing; another id there is
        INCONSISTENT_TOPIC_ID; None reads it from the file. Raises `DiskFull`, `LogDirectoryFailed`.
        """
        raise NotImplementedError

    @property
    def high_watermark(self) -> int:
        raise NotImplementedError

    @high_watermark.setter
    def high_watermark(self, offset: int) -> None:
        """Kept between log start and log end, and never lowered (truncation does that itself)."""
        raise NotImplementedError

    @property
    def last_stable_offset(self) -> int:
        raise NotImplementedError

    @property
    def size(self) -> int:
        """Bytes of all `.log` files."""
        raise NotImplementedError

    def needs_offload(self, records: Buffer) -> bool:
        """Must these records be recompressed or looked into at a length that would hold up the loop?"""
        raise NotImplementedError

    def prepare(self, records: Buffer, *, origin: Origin = Origin.CLIENT) -> Buffer:
        """In the pool: validate and recompress; the result goes to `append_as_leader(..., prepared=True)`."""
        raise NotImplementedError

    def append_as_leader(
        self,
        records: Buffer,
        leader_epoch: int,
        *,
        origin: Origin = Origin.CLIENT,
        prepared: bool = False,
    ) -> AppendInfo:
        raise NotImplementedError

    def append_as_follower(self, records: Buffer) -> AppendInfo | None:
        """Batches of the leader with its offsets and epochs; None when there was no whole batch."""
        raise NotImplementedError

    def read(
        self,
        offset: int,
        max_bytes: int,
        *,
        upper_bound: int,
        min_one_batch: bool = True,
        blocking: bool = False,
    ) -> ReadResult | None:
        raise NotImplementedError

    def aborted_transactions(self, start: int, upper_bound: int) -> list[AbortedTransaction]:
        raise NotImplementedError

    def offset_for_timestamp(self, timestamp: int) -> TimestampOffset | None:
        """The first record at or after a time. Scans inside a batch: run it in the pool."""
        raise NotImplementedError

    def offset_of_max_timestamp(self) -> TimestampOffset | None:
        raise NotImplementedError

    def end_offset_for_epoch(self, leader_epoch: int) -> tuple[int, int]:
        """The largest epoch known up to the asked one and where it ends; (-1, -1) when unknown."""
        raise NotImplementedError

    def maybe_roll(self, now_ms: int, incoming_bytes: int = 0) -> bool:
        raise NotImplementedError

    def roll(self) -> Segment:
        """Close the active segment and begin a new one at the log end."""
        raise NotImplementedError

    def needs_flush(self, now_ms: int | None = None) -> bool:
        """Without a time: `flush.messages` is reached.

        With it: or `flush.ms`, or a closed segment is unflushed.
        """
        raise NotImplementedError

    def flush(self, up_to: int | None = None) -> int:
        """fsync up to an offset (default: the log end); blocking. Gives back the new recovery point."""
        raise NotImplementedError

    def update_config(self, config: LogConfig) -> None:
        raise NotImplementedError

    def delete_records_before(self, offset: int) -> int:
        """Move the log start up (-1: to the high watermark); OFFSET_OUT_OF_RANGE above the high watermark."""
        raise NotImplementedError

    def delete_old_segments(self, now_ms: int) -> list[Segment]:
        """Retention by time, size and log start. Files become `.deleted`; see `remove_deleted_files`."""
        raise NotImplementedError

    def remove_deleted_files(self, now_ms: int) -> int:
        """Remove `.deleted` files whose `file.delete.delay.ms` is over; blocking.

        How many are still waiting.
        """
        raise NotImplementedError

    def replace_segments(self, new_base_offsets: Sequence[int], old: Sequence[Segment]) -> list[Segment]:
        """Put finished `.cleaned` segments in the place of old ones: `.cleaned` to `.swap`, old ones to
        `.deleted`, `.swap` to nothing. Gives back the new segments."""
        raise NotImplementedError

    def truncate_to(self, offset: int) -> bool:
        raise NotImplementedError

    def truncate_fully_and_start_at(self, offset: int) -> None:
        raise NotImplementedError

    def rename_directory(self, directory: str) -> None:
        """The folder gets a new name (`<topic>-<partition>.<uuid>-delete`, a replica moved between directories)."""
        raise NotImplementedError

    def check(self) -> int:
        """Verify every batch of the closed segments; logs damage with file and position; how many were found."""
        raise NotImplementedError

    def close(self) -> None:
        """Clean shutdown: producer snapshot, everything written and synced; blocking."""
        raise NotImplementedError
