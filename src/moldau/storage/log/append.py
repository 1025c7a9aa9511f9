"""Appends to a log: their origin, the parsing and numbering of their batches, and their result.

These functions look at record batches only; `Log` decides where they are written and keeps account of them.
Nothing is done per record.
"""

from __future__ import annotations

import enum
import logging
from collections.abc import Sequence
from typing import NamedTuple

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import TopicPartition
from moldau.protocol.records import (
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
from moldau.storage.producers.end_marker import read_end_marker
from moldau.storage.producers.state import ProducerState
from moldau.storage.segment.reader import StoredBatch

logger = logging.getLogger(__name__)

_LISTED_ERRORS = 3


class Origin(enum.Enum):
    """The origin of an append: records of clients are validated, those of the node itself are trusted."""

    CLIENT = enum.auto()
    COORDINATOR = enum.auto()
    REPLICATION = enum.auto()
    RAFT_LEADER = enum.auto()


class AppendInfo(NamedTuple):
    """`log_append_time` is -1 with `message.timestamp.type=CreateTime`; a duplicate has its first offsets."""

    first_offset: int
    last_offset: int
    max_timestamp: int
    log_append_time: int
    log_start_offset: int
    duplicate: bool
    size: int


class RecordError(NamedTuple):
    batch_index: int
    message: str


class InvalidRecords(KafkaError):
    """Records inside a batch break a rule of the topic; `record_errors` names them."""

    def __init__(self, code: ErrorCode, message: str, record_errors: Sequence[RecordError]) -> None:
        super().__init__(code, message)
        self.record_errors = tuple(record_errors)


class KeylessRecords(InvalidRecords):
    """Records of a compacted topic have no key."""


def refused_records(
    topic_partition: TopicPartition,
    code: ErrorCode,
    errors: Sequence[RecordError],
    kind: type[InvalidRecords] = InvalidRecords,
) -> InvalidRecords:
    """Return the error of a batch with invalid records; its message quotes the first of them."""
    first = "; ".join(f"record {number}: {message}" for number, message in errors[:_LISTED_ERRORS])
    return kind(code, f"{topic_partition}: {len(errors)} records are refused: {first}", errors)


class UnexpectedOffset(KafkaError):
    """A follower received batches that begin before its log end offset."""

    def __init__(self, message: str, first_offset: int, last_offset: int) -> None:
        super().__init__(ErrorCode.UNKNOWN_SERVER_ERROR, message)
        self.first_offset = first_offset
        self.last_offset = last_offset


def writable(records: Buffer) -> bytearray | memoryview:
    """Return the same bytes if they can be changed in place, else a copy."""
    if isinstance(records, bytearray):
        return records
    if isinstance(records, memoryview) and not records.readonly:
        return records
    return bytearray(records)


def trusted_batches(topic_partition: TopicPartition, records: Buffer) -> list[tuple[int, BatchHeader]]:
    """Split what the node itself appends into batches, with their positions."""
    try:
        batches = list(iter_batches(records))
    except CorruptBatch as error:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"{topic_partition}: {error}") from error
    if sum(header.size_in_bytes for _, header in batches) != len(records) or not batches:
        raise KafkaError(ErrorCode.INVALID_RECORD, f"{topic_partition}: the records are not whole batches")
    if any(header.records_count != header.last_offset_delta + 1 for _, header in batches):
        raise KafkaError(
            ErrorCode.INVALID_RECORD,
            f"{topic_partition}: the offsets of a batch do not match its number of records",
        )
    return batches


def check_producers(
    producers: ProducerState,
    buffer: bytearray | memoryview,
    batches: Sequence[tuple[int, BatchHeader]],
    transaction_version: int,
) -> None:
    """Refuse batches and markers of fenced producers and coordinators."""
    for position, header in batches:
        if header.producer_id < 0:
            continue
        if not header.is_control:
            producers.check(header, from_client=False)
        elif marker := read_end_marker(memoryview(buffer)[position:], header):
            producers.check_marker(header, marker, transaction_version)


def assign_offsets(
    buffer: bytearray | memoryview,
    batches: Sequence[tuple[int, BatchHeader]],
    offset: int,
    leader_epoch: int,
    log_append_time: int | None,
) -> list[StoredBatch]:
    """Number batches in place from `offset` on, and stamp them with `log_append_time` if given."""
    stored: list[StoredBatch] = []
    for position, header in batches:
        patch_batch(buffer, position, offset, leader_epoch)
        if log_append_time is not None:
            set_max_timestamp(buffer, position, header, LOG_APPEND_TIME, log_append_time)
        view = memoryview(buffer)[position : position + header.size_in_bytes]
        stored.append(StoredBatch(position, read_batch_header(view), view))
        offset += header.last_offset_delta + 1
    return stored


def leader_batches(
    topic_partition: TopicPartition, records: Buffer, next_offset: int, leader_epoch: int | None
) -> list[StoredBatch]:
    """Split and verify what a follower fetched; batches of a later epoch than the leader's are left out."""
    view = memoryview(records)
    batches: list[StoredBatch] = []
    try:
        for position, header in iter_batches(records):
            if leader_epoch is not None and header.partition_leader_epoch > leader_epoch:
                logger.warning(
                    "%s: ignoring a batch of epoch %d from a leader of epoch %d",
                    topic_partition,
                    header.partition_leader_epoch,
                    leader_epoch,
                )
                break
            if not check_crc(records, position, header):
                raise CorruptBatch("the checksum does not match")
            if header.base_offset < next_offset:
                raise UnexpectedOffset(
                    f"{topic_partition}: offset {header.base_offset} after {next_offset - 1}",
                    header.base_offset,
                    header.last_offset,
                )
            batches.append(StoredBatch(position, header, view[position : position + header.size_in_bytes]))
            next_offset = header.next_offset
    except CorruptBatch as error:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"{topic_partition}: {error}") from error
    return batches
