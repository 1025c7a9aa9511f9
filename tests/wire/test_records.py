"""Record batches: compatibility with Java and other libraries, headers, and damaged batches."""

from __future__ import annotations

import random
from typing import Any

import pytest
from aiokafka.record.default_records import DefaultRecordBatchBuilder as AiokafkaBuilder
from aiokafka.record.memory_records import MemoryRecords as AiokafkaRecords
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka import codec as kafka_python_codecs
from kafka.record.default_records import DefaultRecordBatchBuilder as KafkaPythonBuilder
from kafka.record.memory_records import MemoryRecords as KafkaPythonRecords

from moldau.protocol.compression import CODEC_NAMES
from moldau.protocol.records import (
    BATCH_HEADER_SIZE,
    LOG_APPEND_TIME,
    CorruptBatch,
    DecompressionBomb,
    Record,
    UnsupportedMagic,
    build_batch,
    check_crc,
    iter_batches,
    iter_records,
    patch_batch,
    read_batch_header,
    recompress,
    set_max_timestamp,
)
from moldau.protocol.schema import EncodeError
from tests.wire.record_samples import java_records

CODECS = range(5)
#: Three records in each codec, as Kafka's Java client 4.3 writes them.
JAVA_BATCHES = [
    "000000000000000000000072ffffffff02fb5743f90000000000020000018bcfe568000000018bcfe56814ffffffffffffffffffff"
    "ffffffff000000032000000001010402680230086e756c6c01260014020a6b65792d311076616c75652d312d00360028040a6b6579"
    "2d322076616c75652d322d76616c75652d322d00",
    "000000000000000000000078ffffffff029879b9420001000000020000018bcfe568000000018bcfe56814ffffffffffffffffffff"
    "ffffffff000000031f8b08000000000000ff5360606060646461ca6032e0c82bcdc96154631061e2ca4eadd43514284bcc294dd535"
    "d4653063d060018b192940c48c746134030017c5980b41000000",
    "000000000000000000000083ffffffff02aa877a270002000000020000018bcfe568000000018bcfe56814ffffffffffffffffffff"
    "ffffffff0000000382534e415050590000000001000000010000003e41a02000000001010402680230086e756c6c01260014020a6b"
    "65792d311076616c75652d312d00360028040514043220091428322d76616c75652d322d00",
    "00000000000000000000007effffffff027cd054610003000000020000018bcfe568000000018bcfe56814ffffffffffffffffffff"
    "ffffffff0000000304224d186040823e000000f11a2000000001010402680230086e756c6c01260014020a6b65792d311076616c75"
    "652d312d003600280414002232201400b0322d76616c75652d322d0000000000",
    "000000000000000000000079ffffffff027f60c0ca0004000000020000018bcfe568000000018bcfe56814ffffffffffffffffffff"
    "ffffffff0000000328b52ffd0058e4010004032000000001010402680230086e756c6c01260014020a6b65792d311076616c75652d"
    "312d00360028043220322d322d0003003f07068373d72c03010000",
]


def drain(batch: Any, **options: Any) -> list[Record]:
    return list(iter_records(batch, **options))


@pytest.mark.parametrize("codec", CODECS)
def test_batches_of_java_are_read(codec: int) -> None:
    batch = bytes.fromhex(JAVA_BATCHES[codec])
    header = read_batch_header(batch)
    assert check_crc(batch, 0, header)
    assert header.codec == codec
    assert (header.records_count, header.last_offset, header.max_timestamp) == (3, 2, 1_700_000_000_020)
    assert drain(batch) == java_records(3)
    assert drain(recompress(batch, header, 0)) == java_records(3)
    assert recompress(batch, header, 0).hex() == JAVA_BATCHES[0]


def test_built_batch_has_the_bytes_of_java() -> None:
    assert build_batch(java_records(3)).hex() == JAVA_BATCHES[0]


OTHERS = [
    pytest.param(AiokafkaBuilder, AiokafkaRecords, codec, id=f"aiokafka-{CODEC_NAMES[codec]}")
    for codec in CODECS
] + [
    pytest.param(KafkaPythonBuilder, KafkaPythonRecords, codec, id=f"kafka-python-{CODEC_NAMES[codec]}")
    for codec in CODECS
    if codec == 0 or getattr(kafka_python_codecs, f"has_{CODEC_NAMES[codec]}")()
]


@pytest.mark.parametrize(("builder_class", "reader_class", "codec"), OTHERS)
@pytest.mark.parametrize("count", [1, 500])
def test_batches_are_compatible_with_other_libraries(
    builder_class: Any, reader_class: Any, codec: int, count: int
) -> None:
    records = java_records(count)
    builder = builder_class(
        magic=2,
        compression_type=codec,
        is_transactional=1,
        producer_id=123,
        producer_epoch=4,
        base_sequence=5,
        batch_size=1 << 20,
    )
    for record in records:
        builder.append(record.offset, record.timestamp, record.key, record.value, list(record.headers))
    batch = bytes(builder.build())
    header = read_batch_header(batch)
    assert check_crc(batch, 0, header)
    assert (header.producer_id, header.producer_epoch, header.is_transactional) == (123, 4, True)
    assert drain(batch) == [record._replace(sequence=5 + record.offset) for record in records]

    found = reader_class(bytes(build_batch(records, codec=codec))).next_batch()
    assert found.validate_crc()
    read = [(r.offset, r.timestamp, r.key, r.value, list(r.headers)) for r in found]
    assert read == [tuple(record)[:5] for record in records]


def test_batch_header_properties() -> None:
    batch = build_batch(
        [Record(10, 500, b"k", b"v"), Record(13, 400)],
        base_offset=10,
        last_offset=15,
        codec=4,
        producer_id=7,
        producer_epoch=2,
        base_sequence=2**31 - 3,
        is_transactional=True,
        is_control=True,
        partition_leader_epoch=9,
    )
    header = read_batch_header(batch)
    assert (header.size_in_bytes, header.base_offset, header.last_offset, header.next_offset) == (
        len(batch),
        10,
        15,
        16,
    )
    assert (header.codec, header.is_transactional, header.is_control, header.timestamp_type) == (4, 1, 1, 0)
    assert (header.partition_leader_epoch, header.magic, header.records_count) == (9, 2, 2)
    assert (header.base_timestamp, header.max_timestamp) == (500, 500)
    assert header.last_sequence == 2, "sequences wrap around to 0 after 2147483647"
    assert [record.sequence for record in drain(batch)] == [2**31 - 3, 0]
    assert not header.has_delete_horizon
    assert read_batch_header(build_batch([Record(0, 0)])).last_sequence == -1


def test_patching_keeps_the_checksum() -> None:
    batch = bytearray(b"front") + build_batch(java_records(3))
    patch_batch(batch, 5, 1_000_000, 77)
    header = read_batch_header(batch, 5)
    assert (header.base_offset, header.partition_leader_epoch) == (1_000_000, 77)
    assert check_crc(batch, 5, header)
    assert [record.offset for record in drain(memoryview(batch)[5:])] == [1_000_000, 1_000_001, 1_000_002]


def test_log_append_time_applies_to_all_records() -> None:
    batch = build_batch(java_records(3), codec=3)
    set_max_timestamp(batch, 0, read_batch_header(batch), LOG_APPEND_TIME, 42)
    header = read_batch_header(batch)
    assert check_crc(batch, 0, header)
    assert (header.timestamp_type, header.max_timestamp, header.codec) == (LOG_APPEND_TIME, 42, 3)
    assert [record.timestamp for record in drain(batch)] == [42, 42, 42]
    built = build_batch(java_records(3), codec=3, timestamp_type=LOG_APPEND_TIME, max_timestamp=42)
    assert built == batch


def test_batch_without_records_keeps_its_last_offset() -> None:
    empty = build_batch([], base_offset=5, last_offset=9, codec=1, max_timestamp=77, producer_id=1)
    header = read_batch_header(empty)
    assert (len(empty), header.last_offset, header.records_count, header.codec) == (
        BATCH_HEADER_SIZE,
        9,
        0,
        0,
    )
    assert (header.base_timestamp, header.max_timestamp) == (77, 77)
    assert drain(empty) == []
    kept = build_batch([Record(7, 100, b"k")], base_offset=5, last_offset=9, delete_horizon_ms=1000)
    header = read_batch_header(kept)
    assert header.has_delete_horizon
    assert header.base_timestamp == 1000
    assert drain(kept) == [Record(7, 100, b"k", None, [])]


def test_consecutive_batches_are_split() -> None:
    first, second = build_batch(java_records(3)), build_batch(java_records(5), base_offset=0, codec=2)
    log = bytes(first + second)
    assert [position for position, _ in iter_batches(log)] == [0, len(first)]
    for cut in range(len(first), len(log)):
        assert [position for position, _ in iter_batches(log[:cut])] == [0]
    assert list(iter_batches(b"")) == []
    with pytest.raises(CorruptBatch):
        list(iter_batches(bytes(first) + bytes(BATCH_HEADER_SIZE)))


def test_invalid_batch_headers_are_corrupt() -> None:
    batch = build_batch(java_records(3))
    for length in (-1, 0, 48, -(2**31)):
        batch[8:12] = length.to_bytes(4, "big", signed=True)
        with pytest.raises(CorruptBatch):
            read_batch_header(batch)
    for size in range(BATCH_HEADER_SIZE):
        with pytest.raises(CorruptBatch):
            read_batch_header(build_batch(java_records(1))[:size])


@pytest.mark.parametrize("magic", [0, 1, 3, -1])
def test_other_message_formats_are_refused(magic: int) -> None:
    batch = build_batch(java_records(3))
    batch[16] = magic & 0xFF
    with pytest.raises(UnsupportedMagic) as caught:
        read_batch_header(batch)
    assert caught.value.magic == magic
    if magic in (0, 1):  # Messages of formats 0 and 1 may be shorter than a batch header.
        with pytest.raises(UnsupportedMagic):
            read_batch_header(batch[:30])


def test_header_keys_keep_their_bytes() -> None:
    batch = build_batch([Record(0, 0, headers=[("ä", b"1"), ("bad-\udcff", None)])])
    (record,) = iter_records(batch)
    assert record.headers == [("ä", b"1"), ("bad-\udcff", None)]
    assert build_batch([record]) == batch


@pytest.mark.parametrize("count", [-1, 0, 2, 4, 2**31 - 1])
@pytest.mark.parametrize("codec", CODECS)
def test_wrong_record_counts_are_refused(codec: int, count: int) -> None:
    batch = build_batch(java_records(3), codec=codec)
    header = read_batch_header(batch)._replace(records_count=count)
    with pytest.raises(CorruptBatch):
        drain(batch, header=header)


def test_numbers_out_of_range_are_encode_errors() -> None:
    for options in ({"base_sequence": 2**31}, {"producer_epoch": 2**15}, {"last_offset": 2**40}):
        with pytest.raises(EncodeError):
            build_batch(java_records(1), **options)


@pytest.mark.parametrize("codec", CODECS)
def test_damaged_payloads_are_corrupt(codec: int) -> None:
    rng = random.Random(codec)
    batch = bytes(build_batch(java_records(40), codec=codec))
    for _ in range(300):
        damaged = bytearray(batch)
        for _ in range(rng.randrange(1, 4)):
            damaged[rng.randrange(BATCH_HEADER_SIZE, len(batch))] = rng.randrange(256)
        try:
            drain(damaged, max_bytes=1 << 20)
        except CorruptBatch:
            pass
    for cut in range(BATCH_HEADER_SIZE, len(batch), 3):
        header = read_batch_header(batch)._replace(batch_length=cut - 12)
        with pytest.raises(CorruptBatch):
            drain(batch[:cut], header=header, max_bytes=1 << 20)


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=200), st.integers(0, 7), st.integers(0, 50))
def test_random_payloads_raise_only_corrupt_batch(payload: bytes, codec: int, count: int) -> None:
    batch = build_batch([]) + payload
    header = read_batch_header(batch)._replace(
        batch_length=49 + len(payload), attributes=codec, records_count=count
    )
    try:
        drain(batch, header=header, max_bytes=1 << 20)
    except CorruptBatch:
        pass


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.builds(
            Record,
            offset=st.integers(0, 2**31 - 1),
            timestamp=st.integers(-1, 2**62),
            key=st.none() | st.binary(max_size=200),
            value=st.none() | st.binary(max_size=200),
            sequence=st.just(-1),
            headers=st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=5)), max_size=3),
        ),
        min_size=1,
        max_size=20,
    ),
    st.sampled_from(CODECS),
)
def test_built_batch_is_read_unchanged(records: list[Record], codec: int) -> None:
    records.sort(key=lambda record: record.offset)
    assert drain(build_batch(records, codec=codec)) == records


@pytest.mark.parametrize("codec", CODECS)
def test_decompression_bomb_is_refused(codec: int) -> None:
    batch = build_batch([Record(0, 0, None, bytes(3_000_000))], codec=codec)
    with pytest.raises(DecompressionBomb):
        drain(batch, max_bytes=1_000_000)
    assert len(drain(batch, max_bytes=3_000_100)[0].value or b"") == 3_000_000
