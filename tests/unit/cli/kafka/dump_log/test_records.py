"""kafka-dump-log: batches and records of segments."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.cli.kafka.dump_log.segments import SEGMENT, batch, dump


def test_batches_are_printed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
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


def test_records_are_printed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert dump(folder, "--print-data-log") == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("|")]
    assert lines[3] == (
        "| offset: 3 CreateTime: 1003 keySize: 1 valueSize: 1 sequence: -1 headerKeys: [h] key: k payload: d"
    )
    assert dump(folder, "--print-data-log", "--skip-record-metadata") == 0
    assert "| key: k payload: a\n" in capsys.readouterr().out
    assert dump(folder, "--deep-iteration") == 0
    assert "payload" not in capsys.readouterr().out


def test_invalid_bytes_crcs_and_gaps_are_reported(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
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


def test_max_bytes_limits_the_output(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert dump(folder, "--max-bytes", "100") == 0
    assert len(capsys.readouterr().out.splitlines()) == 3
