"""Batches for the target: as they are where a broker accepts that, else made again."""

from __future__ import annotations

import pytest

from moldau.base.ids import TopicPartition
from moldau.client.batches.types import CorruptRecords, FetchedBatches
from moldau.pipelines.mirror.copy.batches import PreparedBatch, prepared_batches
from moldau.protocol.records import LOG_APPEND_TIME, Record, build_batch, iter_records, read_batch_header
from moldau.protocol.stored.control import ControlType, encode_control_key

T = TopicPartition("t", 0)
LARGE = b"x" * 9000
LZ4 = 3


def records(first: int, count: int, value: bytes = LARGE) -> list[Record]:
    return [Record(n, 1000 + n, b"k%d" % n, value, [("h", b"v")]) for n in range(first, first + count)]


def prepare(
    *batches: bytearray, first_offset: int = 0, aborted: list[tuple[int, int]] | None = None
) -> list[PreparedBatch]:
    data = memoryview(b"".join(batches))
    return list(prepared_batches(FetchedBatches(T, first_offset, data, aborted or [])))


def contents(batch: PreparedBatch) -> list[tuple[int, int, bytes | None]]:
    return [(each.offset, each.timestamp, each.key) for each in iter_records(batch.buffer)]


def test_a_whole_batch_is_copied_as_it_is() -> None:
    original = build_batch(
        records(40, 3), base_offset=40, codec=LZ4, producer_id=9, producer_epoch=1, base_sequence=0
    )
    (batch,) = prepare(original)
    assert batch.buffer[12 + 4 :] == original[12 + 4 :]
    header = read_batch_header(batch.buffer)
    assert (header.base_offset, header.partition_leader_epoch, header.codec) == (0, -1, LZ4)
    assert batch.spans == [(40, 3)]
    assert batch.next_offset == 43


def test_gaps_of_compaction_are_closed() -> None:
    kept = [each for each in records(10, 5) if each.offset in (10, 11, 14)]
    (batch,) = prepare(build_batch(kept, base_offset=10, last_offset=16, codec=LZ4))
    assert contents(batch) == [(0, 1010, b"k10"), (1, 1011, b"k11"), (2, 1014, b"k14")]
    assert batch.spans == [(10, 2), (14, 1)]
    assert batch.next_offset == 17
    header = read_batch_header(batch.buffer)
    assert header.records_count == header.last_offset_delta + 1
    assert header.codec == LZ4


def test_a_batch_without_records_is_left_out() -> None:
    assert prepare(build_batch([], base_offset=10, last_offset=12)) == []


def test_records_before_the_fetch_offset_are_left_out() -> None:
    (batch,) = prepare(build_batch(records(10, 4), base_offset=10), first_offset=12)
    assert [key for _, _, key in contents(batch)] == [b"k12", b"k13"]
    assert batch.spans == [(12, 2)]


def test_log_append_time_becomes_the_create_time() -> None:
    (batch,) = prepare(
        build_batch(records(0, 2), timestamp_type=LOG_APPEND_TIME, max_timestamp=5000),
    )
    assert [timestamp for _, timestamp, _ in contents(batch)] == [5000, 5000]
    assert read_batch_header(batch.buffer).timestamp_type != LOG_APPEND_TIME


def test_a_delete_horizon_is_removed() -> None:
    (batch,) = prepare(build_batch(records(0, 2), delete_horizon_ms=77))
    assert not read_batch_header(batch.buffer).has_delete_horizon
    assert [timestamp for _, timestamp, _ in contents(batch)] == [1000, 1001]


def test_small_batches_are_merged_and_large_ones_are_not() -> None:
    small = [build_batch(records(n, 2, b"v"), base_offset=n) for n in (0, 2, 4)]
    (batch,) = prepare(*small)
    assert len(contents(batch)) == 6
    assert batch.spans == [(0, 6)]
    assert batch.next_offset == 6
    large = [build_batch(records(n, 2), base_offset=n) for n in (0, 2)]
    assert [each.spans for each in prepare(*large)] == [[(0, 2)], [(2, 2)]]
    mixed = prepare(
        large[0], build_batch(records(2, 1, b"v"), base_offset=2), build_batch(records(3, 2), base_offset=3)
    )
    assert [each.spans for each in mixed] == [[(0, 2)], [(2, 1)], [(3, 2)]]


def test_batches_with_other_codecs_are_not_merged() -> None:
    found = prepare(
        build_batch(records(0, 1, b"v")), build_batch(records(1, 1, b"v"), base_offset=1, codec=LZ4)
    )
    assert [read_batch_header(each.buffer).codec for each in found] == [0, LZ4]


def transactional(first: int, producer_id: int) -> bytearray:
    return build_batch(
        records(first, 1),
        base_offset=first,
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=0,
        is_transactional=True,
    )


def marker(offset: int, producer_id: int, kind: ControlType) -> bytearray:
    return build_batch(
        [Record(offset, 0, encode_control_key(kind), b"\0\0\0\0\0\0")],
        base_offset=offset,
        producer_id=producer_id,
        producer_epoch=0,
        is_transactional=True,
        is_control=True,
    )


def test_aborted_transactions_and_markers_are_left_out() -> None:
    found = prepare(
        transactional(0, 1),
        transactional(1, 2),
        marker(2, 1, ControlType.ABORT),
        marker(3, 2, ControlType.COMMIT),
        transactional(4, 1),
        marker(5, 1, ControlType.COMMIT),
        aborted=[(0, 1)],
    )
    assert [each.spans for each in found] == [[(1, 1)], [(4, 1)]]


def test_damaged_batches_are_refused() -> None:
    batch = build_batch(records(0, 2))
    batch[-1] ^= 1
    with pytest.raises(CorruptRecords):
        prepare(batch)
