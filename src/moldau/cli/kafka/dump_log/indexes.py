"""Printing and verifying the indexes of a segment and producer snapshots."""

from __future__ import annotations

from bisect import bisect_right
from struct import Struct

from moldau.cli.kafka.dump_log.files import Inconsistencies, SegmentFile
from moldau.cli.shared.tool import ToolError, warn
from moldau.protocol.records import BatchHeader, CorruptBatch, iter_batches, iter_records, read_batch_header

_OFFSET_ENTRY = Struct(">ii")
_TIME_ENTRY = Struct(">qi")
_TXN_ENTRY = Struct(">hqqqq")
NOT_FOUND = -1


def dump_offset_index(
    index: SegmentFile,
    inconsistencies: Inconsistencies,
    *,
    sanity_only: bool,
    verify_only: bool,
    max_message_size: int,
) -> None:
    log = index.sibling(".log").view()
    entries = _offset_entries(index)
    if not entries:
        print(f"{index.path} is empty.")
        return
    if sanity_only:
        if entries[-1][0] < index.base_offset:
            raise _corrupt(
                index, f"its last offset {entries[-1][0]} is before the first, {index.base_offset}"
            )
        print(f"{index.path} passed sanity check.")
        return
    for number, (offset, position) in enumerate(entries):
        if offset == index.base_offset and number > 0:
            return
        last_offset = _last_offset(log[position : position + max_message_size])
        if last_offset != offset:
            inconsistencies.index_mismatch(index.path, offset, last_offset)
        if not verify_only:
            print(f"offset: {offset} position: {position}")


def _offset_entries(index: SegmentFile) -> list[tuple[int, int]]:
    data = _whole_entries(index, _OFFSET_ENTRY)
    return [
        (index.base_offset + relative, position) for relative, position in _OFFSET_ENTRY.iter_unpack(data)
    ]


def _last_offset(data: memoryview) -> int:
    """Return the last offset of the batch at the start of `data`."""
    try:
        return read_batch_header(data).last_offset
    except CorruptBatch:
        return NOT_FOUND


def _whole_entries(file: SegmentFile, entry: Struct) -> memoryview:
    data = file.view()
    if len(data) % entry.size:
        raise _corrupt(file, f"its size {len(data)} is not a multiple of {entry.size}")
    return data


def _corrupt(file: SegmentFile, reason: str) -> ToolError:
    return ToolError(f"{file.path} is corrupt: {reason}. A broker rebuilds a corrupt index when it starts.")


def dump_time_index(
    index: SegmentFile, inconsistencies: Inconsistencies, *, sanity_only: bool, verify_only: bool
) -> None:
    base = index.base_offset
    data = _whole_entries(index, _TIME_ENTRY)
    entries = [(timestamp, base + relative) for timestamp, relative in _TIME_ENTRY.iter_unpack(data)]
    if sanity_only:
        _check_time_index(index, entries)
        print(f"{index.path} passed sanity check.")
        return
    log, offsets = index.sibling(".log").view(), _offset_entries(index.sibling(".index"))
    previous = -1
    for number, (timestamp, offset) in enumerate(entries):
        if offset == base and number > 0:
            return
        _check_time_entry(
            index, inconsistencies, log[_position(offsets, offset) :], timestamp, offset, previous
        )
        if not verify_only:
            print(f"timestamp: {timestamp} offset: {offset}")
        previous = timestamp


def _check_time_index(index: SegmentFile, entries: list[tuple[int, int]]) -> None:
    if not entries:
        return
    (first_timestamp, _), (timestamp, offset) = entries[0], entries[-1]
    if timestamp < first_timestamp:
        raise _corrupt(index, f"its last timestamp {timestamp} is before the first, {first_timestamp}")
    if offset < index.base_offset:
        raise _corrupt(index, f"its last offset {offset} is before the first, {index.base_offset}")


def _position(offsets: list[tuple[int, int]], offset: int) -> int:
    """Return the position from which to search for an offset."""
    place = bisect_right(offsets, offset, key=lambda entry: entry[0])
    return offsets[place - 1][1] if place else 0


def _check_time_entry(
    index: SegmentFile,
    inconsistencies: Inconsistencies,
    log: memoryview,
    timestamp: int,
    offset: int,
    previous: int,
) -> None:
    found = _batch_with(log, offset)
    if found is None:
        inconsistencies.offset_not_found(index.path, offset, NOT_FOUND)
        return
    batch, header = found
    if header.last_offset != offset:
        inconsistencies.offset_not_found(index.path, offset, header.last_offset)
        return
    newest = max((record.timestamp for record in iter_records(batch, header)), default=-1)
    if newest != timestamp:
        inconsistencies.timestamp_mismatch(index.path, timestamp, newest)
    if previous >= timestamp:
        inconsistencies.timestamp_out_of_order(index.path, timestamp, previous)


def _batch_with(log: memoryview, offset: int) -> tuple[memoryview, BatchHeader] | None:
    try:
        for position, header in iter_batches(log):
            if header.last_offset >= offset:
                return log[position : position + header.size_in_bytes], header
    except CorruptBatch as error:
        warn(f"The log cannot be read up to offset {offset}: {error}")
    return None


def dump_txn_index(index: SegmentFile) -> None:
    for version, producer_id, first, last, stable in _TXN_ENTRY.iter_unpack(
        _whole_entries(index, _TXN_ENTRY)
    ):
        print(
            f"version: {version} producerId: {producer_id} firstOffset: {first} lastOffset: {last} "
            f"lastStableOffset: {stable}"
        )


def dump_snapshot(snapshot: SegmentFile) -> None:
    from moldau.storage.producers.snapshot import CorruptSnapshot, decode_snapshot

    try:
        entries = decode_snapshot(bytes(snapshot.view()))
    except CorruptSnapshot as error:
        warn(f"{snapshot.path}: {error}")
        return
    for entry in entries:
        open_since = entry.transaction_first_offset
        transaction = f"OptionalLong[{open_since}]" if open_since >= 0 else "OptionalLong.empty"
        text = (
            f"producerId: {entry.producer_id} producerEpoch: {entry.epoch} "
            f"coordinatorEpoch: {entry.coordinator_epoch} currentTxnFirstOffset: {transaction} "
            f"lastTimestamp: {entry.timestamp} "
        )
        if entry.last_offset >= 0:
            first = _sequence_before(entry.last_sequence, entry.offset_delta)
            text += (
                f"firstSequence: {first} lastSequence: {entry.last_sequence} lastOffset: {entry.last_offset} "
                f"offsetDelta: {entry.offset_delta} timestamp: {entry.timestamp}"
            )
        print(text)


def _sequence_before(sequence: int, count: int) -> int:
    """Return the sequence number `count` before another; sequence numbers wrap around below 0."""
    return sequence - count if sequence >= count else sequence - count + 2**31
