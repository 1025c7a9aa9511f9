"""Record batches decoded to Arrow columns, compared record by record with the protocol's reader."""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from moldau.base.ids import TopicPartition
from moldau.client.batches.reader import CorruptRecords, FetchedBatches, visible_batches
from moldau.pipelines.arrow import decode as decode_module
from moldau.pipelines.arrow import decode_kernel as kernel
from moldau.pipelines.arrow.decode import SCHEMA, SCHEMA_WITH_HEADERS, Decoder
from moldau.protocol.errors import CorruptBatch
from moldau.protocol.records import (
    CREATE_TIME,
    LOG_APPEND_TIME,
    Record,
    build_batch,
    iter_records,
)
from moldau.protocol.stored.control import ControlType, EndTxnMarker, encode_control_key, encode_control_value
from tests.harness.wire import batches as by_hand

PARTITION = TopicPartition("orders", 7)
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
EVERYTHING = (0, 1 << 62)
CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}


def fetched(*batches: bytes | bytearray, aborted: Sequence[tuple[int, int]] = ()) -> FetchedBatches:
    return FetchedBatches(PARTITION, 0, memoryview(b"".join(batches)), list(aborted))


def decoded(
    answer: FetchedBatches, wanted: tuple[int, int] = EVERYTHING, *, headers: bool = True
) -> list[dict[str, Any]]:
    rows = []
    for batch in Decoder(PARTITION, *wanted, include_headers=headers).decode(answer):
        batch.validate(full=True)
        assert batch.schema.equals(SCHEMA_WITH_HEADERS if headers else SCHEMA)
        assert 0 < batch.num_rows <= decode_module.MAX_ROWS
        rows += _plain(batch)
    return rows


def _plain(batch: Any) -> list[dict[str, Any]]:
    """Timestamps as numbers: not every one is a datetime."""
    microseconds = batch.column("timestamp").cast("int64").to_pylist()
    rows = batch.drop_columns(["timestamp"]).to_pylist()
    return [{**row, "timestamp": stamp} for row, stamp in zip(rows, microseconds, strict=True)]


def expected(answer: FetchedBatches, wanted: tuple[int, int] = EVERYTHING) -> list[dict[str, Any]]:
    """The same rows, read by the protocol's reader."""
    rows = []
    for position, header in visible_batches(answer):
        batch = answer.data[position : position + header.size_in_bytes]
        for record in iter_records(batch, header):
            if wanted[0] <= record.offset < wanted[1]:
                rows.append(_row(record, header.timestamp_type))
    return rows


def _row(record: Record, timestamp_type: int) -> dict[str, Any]:
    largest = ((1 << 63) - 1) // 1000
    return {
        "key": record.key,
        "value": record.value,
        "topic": PARTITION.topic,
        "partition": PARTITION.partition,
        "offset": record.offset,
        "timestamp": max(min(record.timestamp, largest), -largest) * 1000,
        "timestampType": timestamp_type,
        "headers": [
            {"key": name.encode(errors="surrogateescape").decode(errors="replace"), "value": content}
            for name, content in record.headers
        ]
        or None,
    }


BYTES = st.none() | st.binary(max_size=300)
HEADERS = st.lists(st.tuples(st.text(max_size=20), BYTES), max_size=4)
TIMESTAMPS = st.integers(-1, 1 << 45) | st.integers(-(1 << 61), 1 << 61)


@st.composite
def written(draw: st.DrawFn, base_offset: int) -> tuple[int, bytes]:
    """A batch as producers, brokers and compaction leave it, and the next offset."""
    gaps = draw(st.lists(st.integers(0, 3), max_size=12))
    records, offset = [], base_offset
    for gap in gaps:
        offset += gap
        records.append(Record(offset, draw(TIMESTAMPS), draw(BYTES), draw(BYTES), draw(HEADERS)))
        offset += 1
    last = offset + draw(st.integers(0, 3))
    batch = build_batch(
        records,
        base_offset=base_offset,
        last_offset=last,
        codec=draw(st.sampled_from(sorted(CODECS.values()))),
        timestamp_type=draw(st.sampled_from([CREATE_TIME, LOG_APPEND_TIME])),
        max_timestamp=draw(st.none() | st.integers(0, 1 << 45)),
        delete_horizon_ms=draw(st.none() | st.just(1_700_000_000_000)),
        producer_id=draw(st.sampled_from([-1, 5])),
    )
    return last + 1, bytes(batch)


@st.composite
def logs(draw: st.DrawFn) -> list[bytes]:
    offset, batches = draw(st.integers(0, 1 << 40)), []
    for _ in range(draw(st.integers(1, 5))):
        offset, batch = draw(written(offset))
        batches.append(batch)
    return batches


@given(batches=logs(), headers=st.booleans(), cut=st.tuples(st.integers(0, 40), st.integers(0, 40)))
def test_columns_equal_the_records_of_the_protocol_reader(
    batches: list[bytes], headers: bool, cut: tuple[int, int]
) -> None:
    answer = fetched(*batches)
    first = int.from_bytes(batches[0][:8], "big")
    for wanted in (EVERYTHING, (first + cut[0], first + cut[0] + cut[1])):
        rows = expected(answer, wanted)
        if not headers:
            for row in rows:
                del row["headers"]
        assert decoded(answer, wanted, headers=headers) == rows


@pytest.mark.parametrize("codec", CODECS)
def test_large_batches_are_split_into_pieces_of_bounded_size(
    codec: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decode_module, "MAX_ROWS", 100)
    monkeypatch.setattr(decode_module, "MAX_BYTES", 10_000)
    records = [Record(n, n, b"%d" % n, b"v" * (n % 50), [("h", b"%d" % n)]) for n in range(700)]
    whole = [bytes(build_batch(records, codec=CODECS[codec]))]
    small = [
        bytes(build_batch(records[n : n + 30], base_offset=n, codec=CODECS[codec]))
        for n in range(0, len(records), 30)
    ]
    for answer in (fetched(*whole), fetched(*small)):
        assert decoded(answer) == expected(answer)
        assert len(decoded(answer)) == 700


def test_timestamp_in_milliseconds_becomes_the_same_instant() -> None:
    moment = datetime.datetime(2026, 11, 16, 1, 2, 3, 456_000, tzinfo=datetime.UTC)
    milliseconds = (moment - EPOCH) // datetime.timedelta(milliseconds=1)
    answer = fetched(build_batch([Record(0, milliseconds, None, b"v")]))
    (batch,) = Decoder(PARTITION, *EVERYTHING, include_headers=False).decode(answer)
    assert batch.column("timestamp").to_pylist() == [moment]


def test_timestamp_out_of_range_becomes_the_closest_in_range() -> None:
    answer = fetched(build_batch([Record(0, (1 << 62), None, b"v"), Record(1, -(1 << 62), None, b"v")]))
    first, second = decoded(answer)
    assert first["timestamp"] == -second["timestamp"] == ((1 << 63) - 1) // 1000 * 1000


def test_invalid_utf8_in_header_keys_is_replaced_as_in_java() -> None:
    raw = by_hand.record(b"k", b"v")
    headers = by_hand.varint(2) + by_hand.varint(2) + b"\xff\xfe" + by_hand.varint(-1)
    headers += by_hand.varint(2) + "é".encode() + by_hand.varint(0)
    body = raw[1:-1] + headers
    answer = fetched(by_hand.batch(payload=by_hand.varint(len(body)) + body, count=1))
    (row,) = decoded(answer)
    assert row["headers"] == [{"key": "\ufffd\ufffd", "value": None}, {"key": "é", "value": b""}]


def test_records_before_the_fetch_offset_are_skipped() -> None:
    """They may be deleted: the log start offset can be inside a batch."""
    batch = build_batch([Record(n, 0, None, b"%d" % n) for n in range(10)])
    answer = FetchedBatches(PARTITION, 6, memoryview(batch), [])
    assert [row["offset"] for row in decoded(answer, (2, 9))] == [6, 7, 8]


# Transactions and control batches.


def data(offset: int, producer_id: int, value: bytes, *, transactional: bool = True) -> bytes:
    record = Record(offset, 0, None, value)
    return bytes(
        build_batch(
            [record],
            base_offset=offset,
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=0,
            is_transactional=transactional,
        )
    )


def marker(offset: int, producer_id: int, kind: ControlType) -> bytes:
    record = Record(offset, 0, encode_control_key(kind), encode_control_value(EndTxnMarker()))
    return bytes(
        build_batch(
            [record],
            base_offset=offset,
            producer_id=producer_id,
            producer_epoch=0,
            is_transactional=True,
            is_control=True,
        )
    )


INTERLEAVED = (
    data(0, 1, b"aborted"),
    data(1, 2, b"committed"),
    data(2, -1, b"plain", transactional=False),
    data(3, 1, b"aborted too"),
    marker(4, 1, ControlType.ABORT),
    data(5, 1, b"next transaction"),
    marker(6, 2, ControlType.COMMIT),
    data(7, 2, b"aborted"),
    marker(8, 1, ControlType.COMMIT),
    marker(9, 2, ControlType.ABORT),
    data(10, 2, b"idempotent only", transactional=False),
)


def test_aborted_records_and_control_batches_are_skipped() -> None:
    answer = fetched(*INTERLEAVED, aborted=[(0, 1), (7, 2)])
    values = [b"committed", b"plain", b"next transaction", b"idempotent only"]
    assert [row["value"] for row in decoded(answer)] == values
    assert [header.base_offset for _, header in visible_batches(answer)] == [1, 2, 5, 10]


def test_only_control_batches_are_skipped_without_aborted_transactions() -> None:
    assert [row["offset"] for row in decoded(fetched(*INTERLEAVED))] == [0, 1, 2, 3, 5, 7, 10]


def test_response_without_visible_records_yields_no_rows() -> None:
    assert decoded(fetched(marker(4, 1, ControlType.ABORT))) == []
    assert decoded(fetched(build_batch([], base_offset=3, last_offset=9))) == []
    assert decoded(fetched(data(0, 1, b"aborted")), (1, 5)) == []
    assert decoded(fetched()) == []


# Corrupt batches.


def test_wrong_crc_is_reported_with_partition_and_offset() -> None:
    good, bad = data(0, 1, b"good"), bytearray(data(41, 1, b"bad"))
    bad[-2] ^= 1
    with pytest.raises(CorruptRecords, match=r"orders-7 at offset 41: the CRC of the batch does not match"):
        decoded(fetched(good, bad))
    with pytest.raises(CorruptRecords, match=r"orders-7 at offset 41: the CRC of the batch does not match"):
        list(visible_batches(fetched(good, bad)))


@pytest.mark.parametrize(
    ("lie", "reason"),
    [
        ({"count": 2, "records": [(b"k" * 9, b"v")]}, "past the end of its batch"),
        ({"count": 0}, "bytes after the last record"),
        ({"count": -1}, "announces more records"),
        ({"count": 1 << 30}, "announces more records"),
        ({"count": 1 << 30, "codec": by_hand.ZSTD}, "announces [0-9]+ records"),
        ({"magic": 1}, "magic"),
        ({"length": 5}, "length is invalid"),
        ({"length": 1 << 30}, "length is invalid"),
        ({"length": -1}, "length is invalid"),
        ({"attributes": 7}, "unknown compression codec"),
        ({"attributes": by_hand.ZSTD}, "cannot be decompressed"),
    ],
)
def test_inconsistent_batches_are_corrupt(lie: dict[str, Any], reason: str) -> None:
    with pytest.raises(CorruptRecords, match=reason):
        decoded(fetched(by_hand.batch(**lie)))


def test_partial_batch_at_the_end_is_corrupt() -> None:
    with pytest.raises(CorruptRecords, match="length is invalid"):
        decoded(fetched(by_hand.batch(), bytes(30)))


def test_decompression_stops_at_the_size_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decode_module, "MAX_DECOMPRESSED", 1 << 20)
    for codec in (by_hand.GZIP, by_hand.SNAPPY, by_hand.LZ4, by_hand.ZSTD):
        with pytest.raises(CorruptRecords, match="longer than"):
            decoded(fetched(by_hand.batch(payload=bytes(2 << 20), codec=codec)))


def outcome(answer: FetchedBatches) -> list[dict[str, Any]] | None:
    try:
        return decoded(answer)
    except CorruptRecords:
        return None


def judged(answer: FetchedBatches) -> list[dict[str, Any]] | None:
    try:
        return expected(answer)
    except (CorruptRecords, CorruptBatch):
        return None


def changed(good: bytes, changes: list[tuple[int, int]]) -> bytearray:
    damaged = bytearray(good)
    for position, byte in changes:
        if damaged:
            damaged[position % len(damaged)] = byte
    return damaged


CHANGES = st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 255)), max_size=4)
PAYLOAD = b"".join(by_hand.record(b"key", b"value" * n, n) for n in range(4))


@settings(max_examples=400)
@given(
    payload=st.binary(max_size=60) | st.just(PAYLOAD),
    changes=CHANGES,
    cut=st.integers(0, 3),
    count=st.integers(-2, 9),
)
@example(payload=b"\x80" * 9 + b"\x7f" + b"\0" * 20, changes=[], cut=0, count=1)
def test_corrupt_payloads_fail_as_in_the_protocol_reader(
    payload: bytes, changes: list[tuple[int, int]], cut: int, count: int
) -> None:
    damaged = changed(payload, changes)
    damaged = damaged[: len(damaged) - cut] if cut else damaged
    answer = fetched(by_hand.batch(payload=bytes(damaged), count=count, last_offset_delta=8, timestamp=1))
    found = outcome(answer)
    if found is None and re.search(rb"[\x80-\xff]{9}", damaged):
        return  # A varint of ten bytes may exceed 64 bits, which only Python's integers hold.
    assert found == judged(answer)


@settings(max_examples=300)
@given(
    answer=st.binary(max_size=400)
    | st.lists(written(0), max_size=3).map(lambda each: b"".join(b for _, b in each)),
    changes=CHANGES,
)
def test_arbitrary_bytes_yield_rows_or_an_error(answer: bytes, changes: list[tuple[int, int]]) -> None:
    outcome(fetched(changed(answer, changes)))


@settings(max_examples=300)
@given(payload=st.binary(max_size=60) | st.just(PAYLOAD), changes=CHANGES, count=st.integers(0, 9))
def test_kernel_does_not_write_past_its_buffers(
    payload: bytes, changes: list[tuple[int, int]], count: int
) -> None:
    """Bytes after the end of each buffer stay unchanged."""
    payload = bytes(changed(payload, changes))
    rows, size = min(count, len(payload) // kernel.MIN_RECORD_SIZE), len(payload)
    table = np.zeros(kernel.BATCH_FIELDS, np.int64)
    table[kernel.PAYLOAD_END], table[kernel.COUNT] = size, rows
    fields = [4 * (rows + 1), size, (rows + 7) // 8]
    room = [8 * rows, 8 * rows, 4 * rows, 8 * rows, *fields, *fields]
    buffers = [np.full(length + 64, 0xA5, np.uint8) for length in room]
    results = np.zeros(kernel.RESULTS, np.int64)
    source = np.frombuffer(payload + b"\x80" * 64, np.uint8)
    kernel.decode_records(
        *(source.ctypes.data, table.ctypes.data, 1, 0, 1 << 62),
        *(each.ctypes.data for each in buffers),
        results.ctypes.data,
    )
    for length, buffer in zip(room, buffers, strict=True):
        assert (buffer[length:] == 0xA5).all()
