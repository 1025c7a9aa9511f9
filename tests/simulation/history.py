"""The history of partitions and the records that must be found after power loss.

A record may be found from the start of its append; after a flush or a clean stop it must
be found. A copy of the history is kept for every disk operation, so that each can be tried as the last one.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import dataclass, field

from moldau.base.ids import TopicPartition
from moldau.protocol.records import BatchHeader, Record, check_crc, iter_batches, iter_records
from moldau.storage.log.log import Log


@dataclass
class PartitionHistory:
    """`may` are all values an offset ever had, `now` the current one, required below `durable_to`."""

    may: dict[int, set[bytes]] = field(default_factory=dict)
    now: dict[int, bytes] = field(default_factory=dict)
    keys: dict[int, bytes] = field(default_factory=dict)
    durable_to: int = 0
    #: The log may start at any offset up to here.
    may_start: int = 0
    compacted: bool = False
    #: The partition is being deleted: it may exist or not, as a whole.
    doomed: bool = False

    def write(self, offset: int, key: bytes, value: bytes) -> None:
        self.may.setdefault(offset, set()).add(value)
        self.now[offset] = value
        self.keys[offset] = key

    def flushed(self, offset: int) -> None:
        self.durable_to = max(self.durable_to, offset)

    def begin_again(self) -> None:
        """Restart after deletion: no old record must be found, and all may be."""
        self.now, self.durable_to, self.doomed = {}, 0, False

    def rebase(self, log: Log) -> None:
        """Replace the contents by those found after a recovery."""
        self.now = {record.offset: bytes(record.value or b"") for record in records_of(log)}
        self.may_start, self.durable_to = log.log_start_offset, 0

    def cut(self, offset: int) -> None:
        """Truncate: the records after the offset may be found or not."""
        self.durable_to = min(self.durable_to, offset)
        self.now = {place: value for place, value in self.now.items() if place < offset}


class History:
    def __init__(self) -> None:
        self.partitions: dict[TopicPartition, PartitionHistory] = {}

    def __getitem__(self, topic_partition: TopicPartition) -> PartitionHistory:
        return self.partitions.setdefault(topic_partition, PartitionHistory())

    def copy(self) -> History:
        return copy.deepcopy(self)


def batches_of(log: Log) -> list[tuple[BatchHeader, memoryview]]:
    """Return all batches of the log from start to end, after checking every checksum."""
    found: list[tuple[BatchHeader, memoryview]] = []
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        result = log.reader.read(offset, 1 << 20, upper_bound=log.log_end_offset, blocking=True)
        assert result is not None
        if not result.parts:
            break
        data = memoryview(b"".join(result.parts))
        for position, header in iter_batches(data):
            assert check_crc(data, position, header), "a damaged batch is served"
            found.append((header, data[position : position + header.size_in_bytes]))
        assert result.next_offset > offset
        offset = result.next_offset
    return found


def records_of(log: Log) -> list[Record]:
    found = [record for header, data in batches_of(log) for record in iter_records(data, header)]
    return [record for record in found if record.offset >= log.log_start_offset]


def check_partition(log: Log, history: PartitionHistory) -> None:
    """Check the invariants of one partition."""
    where = f"{log.directory}: "
    records = records_of(log)
    offsets = [record.offset for record in records]
    found = {record.offset: bytes(record.value or b"") for record in records}
    if history.durable_to > history.may_start:
        assert log.log_start_offset <= history.may_start, where + "the log starts after synced records"
    assert log.log_end_offset >= history.durable_to, where + (
        f"synced records are lost: the log ends at {log.log_end_offset}, synced was {history.durable_to}"
    )
    assert offsets == sorted(set(offsets)), where + "offsets do not ascend"
    if not history.compacted:
        _check_gaps(log, offsets, history)
    for offset, value in found.items():
        assert value in history.may.get(offset, ()), (
            where + f"offset {offset} has a record that was never written"
        )
    later_keys = {history.keys[offset]: offset for offset in offsets}
    for offset in range(log.log_start_offset, history.durable_to):
        if offset in found:
            assert found[offset] == history.now[offset], where + f"offset {offset} has a truncated record"
        elif offset in history.now:
            superseded = later_keys.get(history.keys[offset], -1) > offset
            assert superseded, where + f"the synced record at {offset} is lost"
    _check_producers(batches_of(log))


def _check_gaps(log: Log, offsets: list[int], history: PartitionHistory) -> None:
    """Files are written to disk in any order: of unsynced data, the end of a segment may be lost, and the
    next segment may not. Anywhere else offsets are contiguous."""
    bases = {segment.base_offset for segment in log.segments.items}
    for before, offset in zip([log.log_start_offset - 1, *offsets], offsets, strict=False):
        missing = [place for place in range(before + 1, offset) if place in history.now]
        allowed = offset in bases and before + 1 >= history.durable_to
        assert not missing or allowed, f"{log.directory}: a gap from {before + 1} to {offset}"


def _check_producers(batches: Iterable[tuple[BatchHeader, memoryview]]) -> None:
    last: dict[tuple[int, int], int] = {}
    for header, _ in batches:
        if header.producer_id >= 0 and header.records_count:
            producer = (header.producer_id, header.producer_epoch)
            expected = last.get(producer, header.base_sequence - 1) + 1
            assert header.base_sequence == expected, "an idempotent producer's batch is missing or doubled"
            last[producer] = header.base_sequence + header.last_offset_delta
