"""Record formats against bytes that MirrorMaker 2 writes."""

from __future__ import annotations

import pytest

from moldau.base.ids import TopicPartition
from moldau.pipelines.mirror.records.checkpoint import Checkpoint, read_checkpoint
from moldau.pipelines.mirror.records.fields import MalformedRecord
from moldau.pipelines.mirror.records.heartbeat import Heartbeat, read_heartbeat
from moldau.pipelines.mirror.records.offset_sync import OffsetSync, read_offset_sync
from moldau.pipelines.mirror.records.source_offset import SourceOffset, read_source_offset

ORDERS = TopicPartition("orders", 3)


def test_heartbeat() -> None:
    beat = Heartbeat("us", "eu", 0x0102030405060708)
    assert beat.key() == b"\x00\x02us\x00\x02eu"
    assert beat.value() == b"\x00\x00\x01\x02\x03\x04\x05\x06\x07\x08"
    assert read_heartbeat(beat.key(), beat.value()) == beat


def test_checkpoint() -> None:
    checkpoint = Checkpoint("g", ORDERS, 7, 5, "é")
    assert checkpoint.key() == b"\x00\x01g\x00\x06orders\x00\x00\x00\x03"
    assert checkpoint.value() == bytes(2) + bytes(7) + b"\x07" + bytes(7) + b"\x05" + b"\x00\x02\xc3\xa9"
    assert read_checkpoint(checkpoint.key(), checkpoint.value()) == checkpoint


def test_offset_sync_has_the_length_of_its_run_in_a_header() -> None:
    sync = OffsetSync(ORDERS, 7, 5, 4)
    assert sync.key() == b"\x00\x06orders\x00\x00\x00\x03"
    assert sync.value() == bytes(7) + b"\x07" + bytes(7) + b"\x05"
    assert read_offset_sync(sync.key(), sync.value(), sync.headers()) == sync
    assert read_offset_sync(sync.key(), sync.value()) == sync._replace(before=0)
    assert OffsetSync(ORDERS, 7, 5).headers() == []


def test_source_offset_is_connects_json() -> None:
    offset = SourceOffset(ORDERS, 41, "someId")
    assert offset.key("us") == b'["MirrorSourceConnector",{"cluster":"us","partition":3,"topic":"orders"}]'
    assert offset.value() == b'{"offset":41,"topicId":"someId"}'
    assert read_source_offset("us", offset.key("us"), offset.value()) == offset
    assert read_source_offset("us", offset.key("us"), b'{"offset":41}') == SourceOffset(ORDERS, 41)
    assert read_source_offset("us", offset.key("us"), None) == SourceOffset(ORDERS, -1)
    assert read_source_offset("eu", offset.key("us"), offset.value()) is None
    assert read_source_offset("us", b'["MirrorHeartbeatConnector",{"a":"b"}]', b'{"offset":0}') is None


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, b""),
        (b"\x00\x02u", b"\x00\x00"),
        (b"\xff\xff", b"\x00\x00"),
        (b"\x00\x01\xff\x00\x01\xff", bytes(10)),
        (b"\x00\x01a\x00\x01b", b"\x00\x01" + bytes(8)),
    ],
)
def test_malformed_records_are_recognised(key: bytes | None, value: bytes) -> None:
    with pytest.raises(MalformedRecord):
        read_heartbeat(key, value)


@pytest.mark.parametrize("key", [b"", b"{}", b"[1]", b'["MirrorSourceConnector",{"cluster":"us"}]'])
def test_malformed_source_offsets_are_recognised(key: bytes) -> None:
    with pytest.raises(MalformedRecord):
        read_source_offset("us", key, b'{"offset":1}')
