"""Coordinator records are decoded as they were encoded, with the same offsets."""

from __future__ import annotations

from moldau.protocol.records import patch_batch, read_batch_header
from moldau.protocol.stored.classic_groups import OffsetCommitKey, OffsetCommitValue
from moldau.protocol.stored.coordinator import CONSUMER_OFFSETS
from moldau.statemachine.coordinator_records import (
    CoordinatorRecord,
    EndTransaction,
    Entry,
    Producer,
    decode_entries,
    encode_entries,
)

NOW_MS = 1_700_000_000_000
PRODUCER = Producer(7, 3)


def commits(count: int, producer: Producer | None = None) -> list[Entry]:
    return [
        CoordinatorRecord(
            OffsetCommitKey(group="g", topic="t", partition=index),
            OffsetCommitValue(offset=index * 10, metadata="", commit_timestamp=NOW_MS),
            4,
            producer,
        )
        for index in range(count)
    ]


def written(entries: list[Entry], base_offset: int) -> list[tuple[int, Entry]]:
    batch = encode_entries(entries, NOW_MS)
    patch_batch(batch, 0, base_offset, 0)
    return list(decode_entries(CONSUMER_OFFSETS, memoryview(batch)))


def test_every_record_of_a_batch_has_its_own_offset() -> None:
    for producer in (None, PRODUCER):
        entries = commits(5, producer)
        assert written(entries, 100) == list(enumerate(entries, 100))
        header = read_batch_header(encode_entries(entries, NOW_MS))
        assert (header.records_count, header.last_offset_delta) == (5, 4)
        assert header.is_transactional == (producer is not None)


def test_tombstones_and_end_markers_are_decoded() -> None:
    removed = CoordinatorRecord(OffsetCommitKey(group="g", topic="t", partition=1), None)
    assert written([removed], 5) == [(5, removed)]
    for committed in (True, False):
        end = EndTransaction(PRODUCER, committed, 12)
        assert written([end], 9) == [(9, end)]
