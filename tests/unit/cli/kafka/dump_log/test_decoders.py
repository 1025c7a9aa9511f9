"""kafka-dump-log: decoders."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from moldau.protocol.schema import encode_bytes
from moldau.protocol.stored.classic_groups import OffsetCommitKey, OffsetCommitValue
from moldau.protocol.stored.control import (
    ControlType,
    EndTxnMarker,
    encode_control_key,
    encode_control_value,
)
from moldau.protocol.stored.coordinator import encode_key, encode_value
from moldau.protocol.stored.metadata import TopicRecord
from tests.unit.cli.kafka.dump_log.segments import dump, write_log


def test_cluster_metadata_decoder(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    value = b"\x01\x02\x00" + encode_bytes(TopicRecord(name="t", topic_id=bytes(16)), 0)
    write_log(folder, (None, value), (None, b"\x01\x7f\x00"))
    assert dump(folder, "--cluster-metadata-decoder") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[3].endswith(
        'payload: {"type":"TOPIC_RECORD","version":0,"data":{"name":"t","topicId":"AAAAAAAAAAAAAAAAAAAAAA"}}'
    )
    assert lines[4].endswith("payload: Error at 1, skipping. Unknown metadata id 127")


def test_offsets_decoder(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    key = encode_key(OffsetCommitKey(group="g", topic="t", partition=1))
    value = encode_value(OffsetCommitValue(offset=5, leader_epoch=0, metadata="m", commit_timestamp=9), 3)
    write_log(folder, (key, value), (key, None), (b"\x00\x63", b""))
    assert dump(folder, "--offsets-decoder", "--skip-record-metadata") == 0
    assert capsys.readouterr().out.splitlines()[3:] == [
        '| key: {"type":"1","data":{"group":"g","topic":"t","partition":1}} payload: {"version":"3","data":'
        '{"offset":5,"leaderEpoch":0,"metadata":"m","commitTimestamp":9}}',
        '| key: {"type":"1","data":{"group":"g","topic":"t","partition":1}} payload: <DELETE>',
        "| key: Unknown record type 99 at offset 2, skipping.",
    ]


def test_control_records_are_decoded(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    marker = encode_control_value(EndTxnMarker(coordinator_epoch=4))
    write_log(folder, (encode_control_key(ControlType.COMMIT), marker), is_control=True)
    assert dump(folder, "--deep-iteration") == 0
    assert capsys.readouterr().out.endswith("headerKeys: [] endTxnMarker: COMMIT coordinatorEpoch: 4\n")


def test_key_and_value_decoder_classes(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_log(folder, (struct.pack(">q", 7), struct.pack(">i", -1)))
    argv = ("--key-decoder-class", "kafka.serializer.LongDecoder", "--value-decoder-class", "IntegerDecoder")
    assert dump(folder, *argv) == 0
    assert capsys.readouterr().out.endswith("key: 7 payload: -1\n")
