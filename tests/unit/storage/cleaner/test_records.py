"""Scanning batches and rewriting them with fewer records, compared with the record reader."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.protocol.records import (
    BatchHeader,
    CorruptBatch,
    Record,
    batch_payload,
    build_batch,
    check_crc,
    iter_records,
    read_batch_header,
)
from moldau.storage.cleaner.records import control_type, empty_batch, rebuild, scan

CODECS = st.sampled_from([0, 1, 2, 3, 4])
NOW = 1_700_000_000_000
content = st.one_of(st.none(), st.binary(max_size=200))
timestamps = st.integers(NOW - 10**9, NOW + 10**9)


@st.composite
def records(draw: st.DrawFn, base_offset: int = 1000) -> list[Record]:
    gaps = draw(st.lists(st.integers(0, 300), min_size=1, max_size=20))
    offset, made = base_offset - 1, []
    for gap in gaps:
        offset += gap + 1
        headers = draw(st.lists(st.tuples(st.text(max_size=3), content), max_size=2))
        made.append(Record(offset, draw(timestamps), draw(content), draw(content), headers))
    return made


def parse(batch: bytes | bytearray | memoryview) -> tuple[BatchHeader, list[Record]]:
    header = read_batch_header(batch)
    assert len(batch) == header.size_in_bytes
    assert check_crc(batch, 0, header)
    return header, [record._replace(headers=list(record.headers)) for record in iter_records(batch, header)]


@given(records(), CODECS)
def test_scan_finds_the_same_records_as_the_record_reader(made: list[Record], codec: int) -> None:
    batch = memoryview(build_batch(made, base_offset=1000, codec=codec))
    header = read_batch_header(batch)
    spans = scan(batch_payload(batch, header), header.records_count)
    found = [(1000 + delta, key, has_value) for _, _, delta, key, has_value in spans]
    assert found == [(record.offset, record.key, record.value is not None) for record in made]


@given(records(), CODECS, st.randoms(use_true_random=False), st.sampled_from([None, NOW + 86_400_000]))
def test_rebuilt_batches_keep_everything_but_the_removed_records(
    made: list[Record], codec: int, random, horizon: int | None
) -> None:
    batch = memoryview(
        build_batch(
            made,
            base_offset=1000,
            last_offset=made[-1].offset + 5,
            codec=codec,
            producer_id=7,
            producer_epoch=3,
            base_sequence=11,
            is_transactional=True,
            partition_leader_epoch=4,
        )
    )
    old = read_batch_header(batch)
    payload = batch_payload(batch, old)
    kept = [number for number in range(len(made)) if random.random() < 0.5] or [0]
    spans = scan(payload, old.records_count)
    noted, written = rebuild(old, payload, [spans[number] for number in kept], horizon)
    new, found = parse(written)
    assert found == [
        record._replace(headers=list(record.headers), sequence=11 + record.offset - 1000)
        for record in (made[number] for number in kept)
    ]
    assert new.max_timestamp == max(record.timestamp for record in found)
    assert new.base_timestamp == (old.base_timestamp if horizon is None else horizon)
    assert new.has_delete_horizon == (horizon is not None)
    for name in ("base_offset", "last_offset", "codec", "producer_id", "producer_epoch", "base_sequence",
                 "partition_leader_epoch", "is_transactional", "is_control", "timestamp_type"):  # fmt: skip
        assert getattr(new, name) == getattr(old, name)
    assert noted._replace(crc=0) == new._replace(crc=0)


def test_log_append_time_survives_compaction() -> None:
    made = [Record(0, 5, b"a", b"1"), Record(1, 5, b"b", b"2")]
    batch = memoryview(build_batch(made, timestamp_type=1, max_timestamp=NOW))
    header = read_batch_header(batch)
    payload = batch_payload(batch, header)
    new, found = parse(rebuild(header, payload, scan(payload, 2)[:1], NOW + 1)[1])
    assert new.max_timestamp == NOW
    assert [record.timestamp for record in found] == [NOW]


def test_batch_without_retained_records_is_a_header() -> None:
    made = [Record(10, NOW, b"a", b"1"), Record(12, NOW + 1, b"b", b"2")]
    old = read_batch_header(
        build_batch(made, base_offset=10, codec=4, producer_id=1, producer_epoch=2, base_sequence=3)
    )
    header, found = parse(empty_batch(old)[1])
    assert found == []
    assert (header.base_offset, header.last_offset, header.last_sequence) == (10, 12, 5)
    assert (header.codec, header.base_timestamp, header.max_timestamp) == (0, -1, NOW + 1)


def test_scan_reads_the_control_record_type() -> None:
    def control(kind: int) -> memoryview:
        marker = Record(0, NOW, bytes([0, 0, 0, kind]), bytes(6))
        return memoryview(build_batch([marker], is_control=True, producer_id=1, producer_epoch=0))

    for kind in (0, 1, 2):
        assert control_type(read_batch_header(control(kind)), control(kind)) == kind
    emptied = empty_batch(read_batch_header(control(0)))[1]
    assert control_type(read_batch_header(emptied), memoryview(emptied)) is None


@given(st.binary(max_size=40), st.integers(0, 5))
def test_invalid_payload_is_corrupt(payload: bytes, count: int) -> None:
    try:
        spans = scan(payload, count)
    except CorruptBatch:
        return
    assert len(spans) == count


def test_wrong_record_counts_are_corrupt() -> None:
    batch = memoryview(build_batch([Record(0, NOW, b"a", b"1")]))
    payload = batch_payload(batch, read_batch_header(batch))
    for count in (0, 2):
        with pytest.raises(CorruptBatch):
            scan(payload, count)
