"""Finding records by time, and aborted transactions by offset.

A time is looked up in the time index of the first segment that has one as late, then batch by batch, and at
last inside one batch, whose records must be parsed. All of it may wait for the disk.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from moldau.protocol.records import NO_TIMESTAMP, Record, iter_records
from moldau.storage.segment.list import SegmentList
from moldau.storage.segment.segment import Segment, StoredBatch
from moldau.storage.segment.txn_index import AbortedTransaction


class TimestampOffset(NamedTuple):
    """A record by its time; `leader_epoch` is -1 when the batch has none."""

    timestamp: int
    offset: int
    leader_epoch: int


def first_at_or_after(segments: SegmentList, timestamp: int, start: int, end: int) -> TimestampOffset | None:
    """The first record in `[start, end)` whose time is at least `timestamp`."""
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


def latest_by_time(segments: SegmentList) -> TimestampOffset | None:
    """The first record that has the largest timestamp of all."""
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


def aborted_between(segments: SegmentList, start: int, upper_bound: int) -> list[AbortedTransaction]:
    """The aborted transactions that a reader of `[start, upper_bound)` must know."""
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
