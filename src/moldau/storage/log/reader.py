"""Reading a log: batches by offset, records by timestamp, aborted transactions, and a check for damage.

Reads may run in a thread while the event loop changes the log. They work on the list of segments they began
with, and begin again if a segment was truncated or removed in the meantime. An `OSError` becomes `DiskFull`
or `LogDirectoryFailed`; damage becomes CORRUPT_MESSAGE.

A timestamp is looked up in the time index of the first segment that has one as large, then batch by batch,
and then inside one batch, whose records must be parsed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from struct import error as StructError
from typing import NamedTuple, TypeVar

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import TopicPartition
from moldau.base.json_log import event
from moldau.protocol.records import NO_TIMESTAMP, CorruptBatch, Record, iter_records
from moldau.storage.disk.disk import WouldWait
from moldau.storage.log.offsets import LogOffsets
from moldau.storage.log.segments import LogSegments, SegmentList
from moldau.storage.segment.reader import StoredBatch, verify_batch
from moldau.storage.segment.segment import Segment
from moldau.storage.segment.txn_index import AbortedTransaction

logger = logging.getLogger(__name__)

T = TypeVar("T")


class ReadResult(NamedTuple):
    """Whole batches of one segment. `parts` is empty if there is nothing below the upper bound."""

    parts: list[memoryview]
    size: int
    first_offset: int
    next_offset: int
    segment_base: int
    position: int


class TimestampOffset(NamedTuple):
    """The record found for a timestamp; `leader_epoch` is -1 if its batch has none."""

    timestamp: int
    offset: int
    leader_epoch: int


class LogReader:
    __slots__ = ("_offsets", "_reported_damage", "_segments", "topic_partition")

    def __init__(self, topic_partition: TopicPartition, segments: LogSegments, offsets: LogOffsets) -> None:
        self.topic_partition = topic_partition
        self._segments = segments
        self._offsets = offsets
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
        """Return whole batches of one segment, from the one that holds `offset`, below `upper_bound`.

        None only if `blocking` is False and the read would have to wait for the disk. With `min_one_batch`, a
        first batch larger than `max_bytes` is returned whole. Damage raises CORRUPT_MESSAGE once it is the
        first thing to read.
        """
        try:
            return self._consistently(
                lambda: self._read(offset, max_bytes, upper_bound, min_one_batch, blocking)
            )
        except WouldWait:
            return None

    def _read(
        self, offset: int, max_bytes: int, upper_bound: int, min_one_batch: bool, blocking: bool
    ) -> ReadResult:
        # In this order: a roll in between only adds a segment that begins at or after `end_offset`.
        end_offset, active, active_size = self._segments.end
        segments = self._segments.current
        start = max(self._offsets.log_start_offset, segments.items[0].base_offset)
        if not start <= offset <= end_offset:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"{self.topic_partition}: offset {offset} is not between the log start offset "
                f"{start} and the log end offset {end_offset}",
            )
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
            found = segment.reader.read(
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

    def _consistently(self, look: Callable[[], T]) -> T:
        """Repeat until no segment was truncated or removed while `look` ran in its thread."""
        segments = self._segments
        while True:
            generation = segments.generation
            try:
                result = look()
            except CorruptBatch as error:
                if segments.unchanged_since(generation):
                    self._report_damage(str(error))
                    raise KafkaError(ErrorCode.CORRUPT_MESSAGE, str(error)) from error
            except StructError:
                if segments.unchanged_since(generation):
                    raise
            except OSError as error:
                if segments.unchanged_since(generation):
                    raise segments.failure(error) from error
            else:
                if generation == segments.generation:
                    return result

    def _report_damage(self, message: str) -> None:
        """Log damage once, however often clients read it."""
        if message != self._reported_damage:
            self._reported_damage = message
            logger.error("%s", message, extra=event("log.damaged"))

    def aborted_transactions(self, start: int, upper_bound: int) -> list[AbortedTransaction]:
        """The aborted transactions that a `read_committed` reader of `[start, upper_bound)` must skip."""
        return self._consistently(lambda: _aborted_between(self._segments.current, start, upper_bound))

    def offset_for_timestamp(self, timestamp: int) -> TimestampOffset | None:
        """The first record with this timestamp or a later one. Blocking."""
        return self._consistently(
            lambda: _first_at_or_after(
                self._segments.current, timestamp, self._offsets.log_start_offset, self._segments.end_offset
            )
        )

    def offset_of_max_timestamp(self) -> TimestampOffset | None:
        """The record with the largest timestamp. Blocking."""
        return self._consistently(lambda: _largest_timestamp(self._segments.current))

    def check(self) -> int:
        """Verify all batches of the closed segments; log damage, and return how many batches have it.

        Segments that were truncated, removed or replaced since the check began are left for the next one.
        """
        found = 0
        generation, segments = self._segments.generation, self._segments.current
        for number, segment in enumerate(segments.items[:-1]):
            try:
                damage = _damage_in(segment, segments.end_of(number, self._segments.end_offset))
            except OSError as error:
                if self._segments.unchanged_since(generation):
                    raise self._segments.failure(error) from error
                continue
            if damage and self._segments.unchanged_since(generation):
                segment.reader.distrust()
                for message in damage:
                    logger.error("%s", message, extra=event("log.damaged"))
                found += len(damage)
        return found


def _damage_in(segment: Segment, end_offset: int) -> list[str]:
    damage: list[str] = []
    path, next_offset = segment.files.log_path, segment.base_offset
    try:
        for batch in segment.batches():
            try:
                verify_batch(path, batch.position, batch.data, batch.header, next_offset, end_offset)
                next_offset = batch.header.next_offset
            except CorruptBatch as error:
                damage.append(str(error))
    except CorruptBatch as error:
        damage.append(str(error))
    return damage


def _first_at_or_after(segments: SegmentList, timestamp: int, start: int, end: int) -> TimestampOffset | None:
    """The first record in `[start, end)` whose timestamp is at least `timestamp`."""
    for segment in segments.since(start):
        if segment.largest_timestamp() < timestamp:
            continue
        indexed = segment.time_index.lookup(timestamp).offset
        position = segment.offset_index.lookup(max(indexed, start)).position
        for batch in segment.batches(position):
            if batch.header.base_offset >= end:
                return None
            if batch.header.max_timestamp < timestamp or batch.header.last_offset < start:
                continue
            for record in _records(batch):
                if record.timestamp >= timestamp and record.offset >= start:
                    return TimestampOffset(record.timestamp, record.offset, _epoch(batch))
    return None


def _largest_timestamp(segments: SegmentList) -> TimestampOffset | None:
    """The first record that has the largest timestamp."""
    newest: Segment = max(segments.items, key=lambda segment: segment.largest().timestamp)
    largest = newest.largest()
    if largest.timestamp == NO_TIMESTAMP:
        return None
    for batch in newest.batches(newest.offset_index.lookup(largest.offset).position):
        if batch.header.max_timestamp == largest.timestamp:
            for record in _records(batch):
                if record.timestamp == largest.timestamp:
                    return TimestampOffset(record.timestamp, record.offset, _epoch(batch))
    return None


def _aborted_between(segments: SegmentList, start: int, upper_bound: int) -> list[AbortedTransaction]:
    found: list[AbortedTransaction] = []
    for segment in segments.since(start):
        aborted, complete = segment.txn_index.collect(start, upper_bound)
        found += aborted
        if complete:
            break
    return found


def _records(batch: StoredBatch) -> Iterator[Record]:
    return iter_records(batch.data, batch.header)


def _epoch(batch: StoredBatch) -> int:
    return max(-1, batch.header.partition_leader_epoch)
