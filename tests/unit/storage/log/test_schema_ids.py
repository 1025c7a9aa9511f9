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
        (1, "the value names no schema: the magic byte is 116, not 0"),
        (2, "the value names no schema: 0 bytes are too short for a magic byte and a schema id"),
        (3, "the value names no schema: 4 bytes are too short for a magic byte and a schema id"),
    )
    assert "3 records are refused: record 1: the value names no schema" in str(refusal.value)


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
    assert "a value is longer than its record" in str(refusal.value)


def test_only_topics_with_the_setting_prepare_small_batches(tmp_path: Path) -> None:
    assert open_log(tmp_path / "a").needs_offload(batch(1))
    assert open_log(tmp_path / "b", keys=True, values=False).needs_offload(batch(1))
    plain = Folder(tmp_path / "c").open()
    assert not plain.needs_offload(batch(1))
    assert plain.prepare(batch(1)).schema_ids is None
