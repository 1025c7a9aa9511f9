"""kafka-dump-log on files made here, whole and damaged."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from moldau.cli.kafka.dump_log.command import main
from moldau.protocol.records import Record, build_batch
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

SEGMENT = "00000000000000000000"


def batch(base_offset: int, *values: str, codec: int = 0) -> bytes:
    records = [
        Record(base_offset + number, 1000 + base_offset + number, b"k", value.encode(), [("h", b"x")])
        for number, value in enumerate(values)
    ]
    return bytes(build_batch(records, base_offset=base_offset, codec=codec))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two batches of two records, with the indexes that belong to them."""
    first, second = batch(0, "a", "b"), batch(2, "c", "d", codec=4)
    (tmp_path / f"{SEGMENT}.log").write_bytes(first + second)
    (tmp_path / f"{SEGMENT}.index").write_bytes(struct.pack(">ii", 3, len(first)))
    (tmp_path / f"{SEGMENT}.timeindex").write_bytes(struct.pack(">qi", 1003, 3))
    (tmp_path / f"{SEGMENT}.txnindex").write_bytes(struct.pack(">hqqqq", 0, 7, 1, 2, 3))
    return tmp_path


def dump(folder: Path, *argv: str, name: str = f"{SEGMENT}.log") -> int:
    return main(["--files", str(folder / name), *argv])


def test_batches(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert dump(folder) == 0
    dumping, start, first, second = capsys.readouterr().out.splitlines()
    assert dumping == f"Dumping {folder}/{SEGMENT}.log"
    assert start == "Log starting offset: 0"
    assert first.startswith(
        "baseOffset: 0 lastOffset: 1 count: 2 baseSequence: -1 lastSequence: -1 producerId: -1"
    )
    assert "deleteHorizonMs: OptionalLong.empty position: 0 CreateTime: 1001" in first
    assert first.endswith("isvalid: true")
    assert "compresscodec: zstd" in second


def test_records(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert dump(folder, "--print-data-log") == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("|")]
    assert lines[3] == (
        "| offset: 3 CreateTime: 1003 keySize: 1 valueSize: 1 sequence: -1 headerKeys: [h] key: k payload: d"
    )
    assert dump(folder, "--print-data-log", "--skip-record-metadata") == 0
    assert "| key: k payload: a\n" in capsys.readouterr().out
    assert dump(folder, "--deep-iteration") == 0
    assert "payload" not in capsys.readouterr().out


def test_indexes(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert dump(folder, name=f"{SEGMENT}.index") == 0
    position = len(batch(0, "a", "b"))
    assert capsys.readouterr().out.splitlines()[1:] == [f"offset: 3 position: {position}"]
    assert dump(folder, name=f"{SEGMENT}.timeindex") == 0
    captured = capsys.readouterr()
    assert captured.out.splitlines()[1:] == ["timestamp: 1003 offset: 3"]
    assert captured.err == ""
    assert dump(folder, "--verify-index-only", name=f"{SEGMENT}.index") == 0
    assert len(capsys.readouterr().out.splitlines()) == 1
    assert dump(folder, "--index-sanity-check", name=f"{SEGMENT}.index") == 0
    assert capsys.readouterr().out.endswith(f"{SEGMENT}.index passed sanity check.\n")
    assert dump(folder, name=f"{SEGMENT}.txnindex") == 0
    line = "version: 0 producerId: 7 firstOffset: 1 lastOffset: 2 lastStableOffset: 3"
    assert capsys.readouterr().out.splitlines()[1:] == [line]


def test_indexes_that_do_not_fit_their_log(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / f"{SEGMENT}.index").write_bytes(struct.pack(">ii", 5, 0))
    assert dump(folder, name=f"{SEGMENT}.index") == 0
    assert (
        f"Mismatches in :{folder}/{SEGMENT}.index\n  Index offset: 5, log offset: 1"
        in capsys.readouterr().err
    )
    (folder / f"{SEGMENT}.timeindex").write_bytes(struct.pack(">qiqi", 999, 1, 999, 3))
    assert dump(folder, name=f"{SEGMENT}.timeindex") == 0
    shown = capsys.readouterr().err
    assert "Index timestamp: 999, log timestamp: 1001" in shown
    assert "Index timestamp: 999, Previously indexed timestamp: 999" in shown
    (folder / f"{SEGMENT}.timeindex").write_bytes(struct.pack(">qiqi", 1, 9, 1, 2))
    assert dump(folder, name=f"{SEGMENT}.timeindex") == 0
    shown = capsys.readouterr().err
    assert "Indexed offset: 9, found log offset: -1" in shown
    assert "Indexed offset: 2, found log offset: 3" in shown


def test_damaged_indexes(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / f"{SEGMENT}.index").write_bytes(b"\0" * 7)
    assert dump(folder, "--index-sanity-check", name=f"{SEGMENT}.index") == 1
    assert "is corrupt: its size 7 is not a multiple of 8" in capsys.readouterr().err
    (folder / f"{SEGMENT}.index").write_bytes(b"")
    assert dump(folder, name=f"{SEGMENT}.index") == 0
    assert capsys.readouterr().out.endswith(f"{SEGMENT}.index is empty.\n")


def test_a_damaged_log(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = folder / f"{SEGMENT}.log"
    whole = log.read_bytes()
    log.write_bytes(whole + b"\0" * 100)
    assert dump(folder) == 0
    captured = capsys.readouterr()
    assert f"Found 100 invalid bytes at the end of {SEGMENT}.log" in captured.out
    assert "at position" in captured.err
    log.write_bytes(whole[:-1] + b"\xff")
    assert dump(folder, "--deep-iteration") == 0
    captured = capsys.readouterr()
    assert "isvalid: false" in captured.out
    log.write_bytes(batch(0, "a") + batch(5, "b"))
    assert dump(folder, "--deep-iteration") == 0
    assert "  0 is followed by 5" in capsys.readouterr().err


def test_a_part_of_a_log(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert dump(folder, "--max-bytes", "100") == 0
    assert len(capsys.readouterr().out.splitlines()) == 3


def write_log(folder: Path, *records: tuple[bytes | None, bytes | None], is_control: bool = False) -> None:
    made = [Record(number, 1000, key, value) for number, (key, value) in enumerate(records)]
    (folder / f"{SEGMENT}.log").write_bytes(bytes(build_batch(made, is_control=is_control)))


def test_metadata_records(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    value = b"\x01\x02\x00" + encode_bytes(TopicRecord(name="t", topic_id=bytes(16)), 0)
    write_log(folder, (None, value), (None, b"\x01\x7f\x00"))
    assert dump(folder, "--cluster-metadata-decoder") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[3].endswith(
        'payload: {"type":"TOPIC_RECORD","version":0,"data":{"name":"t","topicId":"AAAAAAAAAAAAAAAAAAAAAA"}}'
    )
    assert lines[4].endswith("payload: Error at 1, skipping. Unknown metadata id 127")


def test_offset_records(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
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


def test_control_records(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    marker = encode_control_value(EndTxnMarker(coordinator_epoch=4))
    write_log(folder, (encode_control_key(ControlType.COMMIT), marker), is_control=True)
    assert dump(folder, "--deep-iteration") == 0
    assert capsys.readouterr().out.endswith("headerKeys: [] endTxnMarker: COMMIT coordinatorEpoch: 4\n")


def test_files_that_are_none(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "meta.properties").write_text("")
    assert dump(folder, name="meta.properties") == 0
    assert "Ignoring unknown file" in capsys.readouterr().err
    assert dump(folder, name="00000000000000000009.log") == 1
    assert "No such file" in capsys.readouterr().err
    assert dump(folder, "--key-decoder-class", "com.example.Mine") == 1
    assert "There is no decoder com.example.Mine" in capsys.readouterr().err
    assert main([]) == 1
    assert main(["--print-data-log"]) == 1
    assert 'Missing required argument "[files]"' in capsys.readouterr().err


def test_other_decoders(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_log(folder, (struct.pack(">q", 7), struct.pack(">i", -1)))
    argv = ("--key-decoder-class", "kafka.serializer.LongDecoder", "--value-decoder-class", "IntegerDecoder")
    assert dump(folder, *argv) == 0
    assert capsys.readouterr().out.endswith("key: 7 payload: -1\n")
