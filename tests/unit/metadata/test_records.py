"""The encoding of metadata records."""

from __future__ import annotations

import pytest

from moldau.base.ids import Uuid
from moldau.metadata.records import RECORD_TYPES, decode_record, encode_record, record_version
from moldau.protocol.schema import DecodeError
from moldau.protocol.stored.metadata import (
    BrokerRegistrationChangeRecord,
    FeatureLevelRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    TopicRecord,
)
from tests.unit.metadata.builders import uid

#: The value of the first record that Apache Kafka 4.3 puts into bootstrap.checkpoint.
APACHE_METADATA_VERSION = bytes.fromhex("010c00116d657461646174612e76657273696f6e001e00")


def test_frame_matches_apache_kafka() -> None:
    record = FeatureLevelRecord(name="metadata.version", feature_level=30)
    assert encode_record(record, 30) == APACHE_METADATA_VERSION
    assert decode_record(APACHE_METADATA_VERSION) == record
    assert decode_record(memoryview(APACHE_METADATA_VERSION)) == record


def test_every_record_type_round_trips() -> None:
    for record_type, cls in RECORD_TYPES.items():
        record = cls()
        assert record_type == record.API_KEY
        assert decode_record(encode_record(record, 30)) == record


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"\x01",
        b"\x01\x0c",
        b"\x02\x0c\x00",
        b"\x01\x63\x00",
        b"\x01\x0c\x07",
        APACHE_METADATA_VERSION[:-1],
    ],
)
def test_damaged_or_unsupported_values_raise_decode_error(value: bytes) -> None:
    with pytest.raises(DecodeError):
        decode_record(value)


def test_trailing_bytes_raise_decode_error() -> None:
    with pytest.raises(DecodeError):
        decode_record(APACHE_METADATA_VERSION + b"\x00")


@pytest.mark.parametrize(
    ("metadata_version", "register", "partition"), [(7, 1, 0), (8, 2, 0), (17, 3, 1), (23, 3, 2), (30, 4, 2)]
)
def test_record_versions_follow_the_metadata_version(
    metadata_version: int, register: int, partition: int
) -> None:
    assert record_version(RegisterBrokerRecord(), metadata_version) == register
    assert record_version(PartitionRecord(), metadata_version) == partition
    assert record_version(PartitionChangeRecord(), metadata_version) == partition
    assert record_version(TopicRecord(), metadata_version) == 0


def test_registration_changes_use_the_lowest_sufficient_version() -> None:
    def version(**values: object) -> int:
        return record_version(BrokerRegistrationChangeRecord(broker_id=1, **values), 30)  # type: ignore[arg-type]

    assert version(fenced=-1) == 0
    assert version(in_controlled_shutdown=1) == 1
    assert version(log_dirs=[uid(1)]) == 2
    assert version(cordoned_log_dirs=[]) == 3


def test_partition_record_matches_apache_kafka() -> None:
    directory, topic_id = Uuid(bytes(range(16))), Uuid(bytes(range(16, 32)))
    record = PartitionRecord(
        partition_id=1,
        topic_id=topic_id,
        replicas=[1],
        isr=[1],
        leader=1,
        leader_epoch=0,
        partition_epoch=0,
        directories=[directory],
    )
    value = encode_record(record, 30)
    assert len(value) == 65
    assert value[:3] == b"\x01\x03\x02"
    assert value.endswith(b"\x02" + directory + b"\x00")
