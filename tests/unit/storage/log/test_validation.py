from __future__ import annotations

from typing import Any

import pytest

from moldau.base.errors import ErrorCode, KafkaError
from moldau.protocol.compression import CODEC_NAMES
from moldau.protocol.records import Record, build_batch, iter_records, read_batch_header
from moldau.storage.log.append import InvalidRecords
from moldau.storage.log.config import LogConfig
from moldau.storage.log.validation import Validation
from tests.harness.wire.batches import batch as lying_batch
from tests.harness.wire.batches import old_message
from tests.unit.storage.log.one_log import NOW, ORDERS, batch

HOUR = 3_600_000


def refusal(data: bytes | bytearray, **config: Any) -> KafkaError:
    validation = Validation(ORDERS, LogConfig(**config))
    with pytest.raises(KafkaError) as refused:
        header = validation.client_batch(data)
        validation.check_client(data, header, NOW)
        if validation.must_open(header):
            validation.open_batch(data, header)
    assert "orders-0" in str(refused.value)
    return refused.value


def accept(data: bytes | bytearray, **config: Any) -> None:
    validation = Validation(ORDERS, LogConfig(**config))
    validation.check_client(data, validation.client_batch(data), NOW)


def test_valid_batch_is_accepted() -> None:
    accept(batch(3))
    accept(lying_batch(timestamp=NOW))
    accept(batch(3, producer_id=1, producer_epoch=0, base_sequence=0))


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", ErrorCode.INVALID_RECORD),
        (b"\0" * 10, ErrorCode.INVALID_RECORD),
        (bytes(batch(3))[:-1], ErrorCode.INVALID_RECORD),
        (bytes(batch(3)) * 2, ErrorCode.INVALID_RECORD),
        (old_message(0), ErrorCode.INVALID_RECORD),
        (old_message(1), ErrorCode.INVALID_RECORD),
        (lying_batch(magic=3), ErrorCode.CORRUPT_MESSAGE),
        (lying_batch(length=5), ErrorCode.CORRUPT_MESSAGE),
        (lying_batch(length=-5), ErrorCode.CORRUPT_MESSAGE),
        (lying_batch(crc=1), ErrorCode.CORRUPT_MESSAGE),
        (lying_batch(base_offset=1), ErrorCode.INVALID_RECORD),
        (lying_batch(count=0), ErrorCode.INVALID_RECORD),
        (lying_batch(count=-1, last_offset_delta=-2), ErrorCode.INVALID_RECORD),
        (lying_batch(count=2), ErrorCode.INVALID_RECORD),
        (lying_batch(last_offset_delta=5), ErrorCode.INVALID_RECORD),
        (lying_batch(count=2**31 - 1, last_offset_delta=2**31 - 2), ErrorCode.INVALID_RECORD),
        (lying_batch(attributes=0x20), ErrorCode.INVALID_RECORD),
        (lying_batch(attributes=0x05), ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
        (lying_batch(producer_id=1, producer_epoch=0, sequence=-1), ErrorCode.INVALID_RECORD),
    ],
    # Batches contain the current time, and test ids must be the same in every process.
    ids=lambda value: len(value) if isinstance(value, bytes) else value.name,
)
def test_invalid_batch_header_is_refused(data: bytes, code: ErrorCode) -> None:
    assert refusal(data).code == code


def test_truncated_batch_after_a_whole_one_is_ignored() -> None:
    accept(bytes(batch(3)) + bytes(batch(3))[:40])


def test_oversized_batch_is_refused() -> None:
    data = batch(10, value=b"x" * 100)
    accept(data, max_message_bytes=len(data))
    assert refusal(data, max_message_bytes=len(data) - 1).code == ErrorCode.MESSAGE_TOO_LARGE


def test_timestamps_outside_the_allowed_range_are_refused() -> None:
    accept(batch(timestamp=NOW + HOUR))
    accept(batch(timestamp=-1))
    accept(batch(timestamp=0))
    late = refusal(batch(2, timestamp=NOW + HOUR + 1))
    assert late.code == ErrorCode.INVALID_TIMESTAMP
    assert isinstance(late, InvalidRecords)
    assert [error.batch_index for error in late.record_errors] == [0, 1]
    early = refusal(batch(timestamp=NOW - 1001), message_timestamp_before_max_ms=1000)
    assert early.code == ErrorCode.INVALID_TIMESTAMP
    accept(batch(timestamp=NOW + HOUR * 9), message_timestamp_type="LogAppendTime")


def test_record_errors_list_only_the_invalid_records() -> None:
    mixed = build_batch([Record(0, NOW, b"a", b""), Record(1, NOW + HOUR * 2, b"b", b"")])
    error = refusal(mixed)
    assert isinstance(error, InvalidRecords)
    assert [item.batch_index for item in error.record_errors] == [1]


def test_log_append_time_set_by_a_client_is_refused_on_log_append_time_topics() -> None:
    data = batch(2, timestamp_type=1, max_timestamp=NOW)
    assert refusal(data, message_timestamp_type="LogAppendTime").code == ErrorCode.INVALID_TIMESTAMP
    accept(data)


def test_excessive_record_count_is_refused_with_a_short_error() -> None:
    data = lying_batch(attributes=0x0B, count=2**31 - 1, last_offset_delta=2**31 - 2, timestamp=NOW)
    error = refusal(data, message_timestamp_type="LogAppendTime")
    assert isinstance(error, InvalidRecords)
    assert len(error.record_errors) <= 1000


@pytest.mark.parametrize("codec", range(5))
def test_keyless_records_on_a_compacted_topic_are_refused(codec: int) -> None:
    compact = frozenset({"compact"})
    keyless = build_batch(
        [Record(0, NOW, b"k", b"v"), Record(1, NOW, None, b"v"), Record(2, NOW, b"", b"v")], codec=codec
    )
    error = refusal(keyless, cleanup_policy=compact)
    assert error.code == ErrorCode.INVALID_RECORD
    assert isinstance(error, InvalidRecords)
    assert [item.batch_index for item in error.record_errors] == [1]
    validation = Validation(ORDERS, LogConfig(cleanup_policy=compact))
    data = batch(3, codec=codec)
    assert validation.open_batch(data, read_batch_header(data)).records is data


def test_records_that_contradict_the_header_are_refused_when_decompressed() -> None:
    compact = frozenset({"compact", "delete"})
    assert (
        refusal(lying_batch(count=3, last_offset_delta=2), cleanup_policy=compact).code
        == ErrorCode.INVALID_RECORD
    )
    garbage = lying_batch(payload=b"\x7f" * 40, timestamp=NOW)
    assert refusal(garbage, cleanup_policy=compact).code == ErrorCode.INVALID_RECORD
    offsets = build_batch([Record(0, NOW, b"a", b""), Record(2, NOW, b"b", b"")], last_offset=1)
    assert refusal(offsets, cleanup_policy=compact).code == ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("source", range(5))
@pytest.mark.parametrize("target", ["uncompressed", "gzip", "snappy", "lz4", "zstd"])
def test_topic_compression_type_recompresses_batches(source: int, target: str) -> None:
    validation = Validation(ORDERS, LogConfig(compression_type=target))
    data = batch(20, codec=source)
    header = read_batch_header(data)
    wanted = 0 if target == "uncompressed" else CODEC_NAMES.index(target)
    assert validation.must_open(header) == (source != wanted)
    changed = validation.open_batch(data, header).records
    assert read_batch_header(changed).codec == wanted
    assert list(iter_records(changed)) == list(iter_records(data))


def test_compression_type_producer_keeps_the_codec() -> None:
    assert not Validation(ORDERS, LogConfig()).must_open(read_batch_header(batch(5, codec=4)))


def test_recompressed_batch_above_max_message_bytes_is_refused() -> None:
    data = batch(50, value=b"x" * 100, codec=4)
    error = refusal(data, compression_type="uncompressed", max_message_bytes=1000)
    assert error.code == ErrorCode.MESSAGE_TOO_LARGE


def test_invalid_compressed_payload_is_corrupt() -> None:
    data = lying_batch(payload=b"not a frame", attributes=4, timestamp=NOW)
    assert refusal(data, compression_type="lz4").code == ErrorCode.INVALID_RECORD
