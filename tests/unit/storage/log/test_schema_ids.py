from __future__ import annotations

from pathlib import Path

import pytest

from moldau.base.errors import ErrorCode, KafkaError
from moldau.protocol.records import BATCH_HEADER_SIZE, Record, batch_crc, build_batch
from moldau.storage.log.append import InvalidRecords
from moldau.storage.log.log import Log
from moldau.storage.log.schema_ids import SchemaIds
from tests.unit.storage.log.one_log import NOW, Folder, batch

ONE = b"\x00\x00\x00\x00\x01data"
TWO = b"\x00\x00\x00\x00\x02"
LARGEST = b"\x00\xff\xff\xff\xff"


def open_log(path: Path, *, keys: bool = False, values: bool = True) -> Log:
    folder = Folder(path, confluent_key_schema_validation=keys, confluent_value_schema_validation=values)
    return folder.open()


def of_values(*values: bytes | None, key: bytes | None = None, codec: int = 0) -> bytearray:
    records = [Record(number, NOW, key, value) for number, value in enumerate(values)]
    return build_batch(records, codec=codec)


@pytest.mark.parametrize("codec", range(5))
def test_ids_of_values_are_read(tmp_path: Path, codec: int) -> None:
    data = of_values(ONE, TWO, None, ONE + b"v" * 300, LARGEST, codec=codec)
    assert open_log(tmp_path).prepare(data).schema_ids == SchemaIds(None, {1: [0, 3], 2: [1], 2**32 - 1: [4]})


def test_ids_of_keys_are_read(tmp_path: Path) -> None:
    records = [
        Record(0, NOW, ONE, b"anything"),
        Record(1, NOW, None, None),
        Record(2, NOW, TWO + b"k" * 200, b""),
    ]
    log = open_log(tmp_path, keys=True, values=False)
    assert log.prepare(build_batch(records)).schema_ids == SchemaIds({1: [0], 2: [2]}, None)


def test_ids_of_long_keys_timestamps_and_headers_are_read(tmp_path: Path) -> None:
    records = [
        Record(number, NOW + number * 100, TWO + b"k" * number, ONE, (("h", b"x" * number),))
        for number in range(300)
    ]
    log = open_log(tmp_path, keys=True)
    numbers = list(range(300))
    assert log.prepare(build_batch(records)).schema_ids == SchemaIds({2: numbers}, {1: numbers})


def test_records_without_a_frame_are_refused(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    with pytest.raises(InvalidRecords) as refusal:
        log.prepare(of_values(ONE, b"text", b"", TWO[:4], None))
    assert refusal.value.code == ErrorCode.INVALID_RECORD
    assert refusal.value.record_errors == (
        (1, "the value names no schema: the magic byte is 116, not 0 or 1"),
        (2, "the value names no schema: 0 bytes are too short for a magic byte and a schema id"),
        (3, "the value names no schema: 4 bytes are too short for a magic byte and a schema id"),
    )
    assert "3 records are refused: record 1: the value names no schema" in str(refusal.value)


GUID = bytes(range(16))


def of_headers(
    *headers: tuple[str, bytes | None], key: bytes | None = None, value: bytes = b"{}"
) -> bytearray:
    return build_batch([Record(0, NOW, key, value, (("trace", b"x" * 200), *headers))])


@pytest.mark.parametrize("codec", range(5))
def test_schemas_named_by_guid_are_read(tmp_path: Path, codec: int) -> None:
    data = of_values(b"\x01" + GUID + b"data", ONE, b"\x01" + GUID, codec=codec)
    assert open_log(tmp_path).prepare(data).schema_ids == SchemaIds(None, {GUID: [0, 2], 1: [1]})


@pytest.mark.parametrize(("header", "schema"), [(b"\x01" + GUID + b"\x00", GUID), (ONE, 1)])
def test_schemas_named_in_headers_are_read(tmp_path: Path, header: bytes, schema: int | bytes) -> None:
    log = open_log(tmp_path, keys=True)
    batch = of_headers(("__value_schema_id", header), ("__key_schema_id", TWO), key=b"plain")
    assert log.prepare(batch).schema_ids == SchemaIds({2: [0]}, {schema: [0]})


def test_header_takes_precedence_over_the_bytes_before_the_data(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    assert log.prepare(of_headers(("__value_schema_id", ONE), value=TWO)).schema_ids == SchemaIds(
        None, {1: [0]}
    )
    null = of_headers(("__value_schema_id", None), ("__key_schema_id", ONE), value=TWO)
    assert log.prepare(null).schema_ids == SchemaIds(None, {2: [0]})


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (b"", "0 bytes are too short for a magic byte and a schema id"),
        (b"\x01" + GUID[:15], "16 bytes are too short for a magic byte and a GUID"),
        (b"\x02", "the magic byte is 2, not 0 or 1"),
    ],
)
def test_header_that_names_no_schema_is_refused(tmp_path: Path, header: bytes, message: str) -> None:
    with pytest.raises(InvalidRecords) as refusal:
        open_log(tmp_path).prepare(of_headers(("__value_schema_id", header), value=ONE))
    assert refusal.value.record_errors == ((0, f"the header of the value names no schema: {message}"),)


@pytest.mark.parametrize("changed", [b"\x7f", b"\x01"])
def test_header_that_is_longer_than_its_record_is_refused(tmp_path: Path, changed: bytes) -> None:
    data = of_headers(("__value_schema_id", ONE))
    position = bytes(data).index(b"__value_schema_id") - 1
    data[position : position + 1] = changed
    data[17:21] = batch_crc(data, 0, len(data)).to_bytes(4, "big")
    with pytest.raises(KafkaError) as refusal:
        open_log(tmp_path).prepare(data)
    assert refusal.value.code == ErrorCode.INVALID_RECORD


def test_errors_are_bounded(tmp_path: Path) -> None:
    with pytest.raises(InvalidRecords) as refusal:
        open_log(tmp_path).prepare(of_values(*[b"x"] * 5000))
    assert len(refusal.value.record_errors) == 1000


def test_values_longer_than_their_record_are_refused(tmp_path: Path) -> None:
    data = of_values(ONE)
    position = bytes(data).index(ONE) - 1
    assert position > BATCH_HEADER_SIZE
    data[position] = 100
    data[17:21] = batch_crc(data, 0, len(data)).to_bytes(4, "big")
    with pytest.raises(KafkaError) as refusal:
        open_log(tmp_path).prepare(data)
    assert refusal.value.code == ErrorCode.INVALID_RECORD
    assert "a value exceeds its record" in str(refusal.value)


def test_only_topics_with_the_setting_prepare_small_batches(tmp_path: Path) -> None:
    assert open_log(tmp_path / "a").needs_offload(batch(1))
    assert open_log(tmp_path / "b", keys=True, values=False).needs_offload(batch(1))
    plain = Folder(tmp_path / "c").open()
    assert not plain.needs_offload(batch(1))
    assert plain.prepare(batch(1)).schema_ids is None
