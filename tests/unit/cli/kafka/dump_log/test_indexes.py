"""kafka-dump-log: indexes."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from tests.unit.cli.kafka.dump_log.segments import SEGMENT, batch, dump


def test_indexes_are_printed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
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


def test_mismatches_between_index_and_log_are_reported(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
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


def test_corrupt_and_empty_indexes(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / f"{SEGMENT}.index").write_bytes(b"\0" * 7)
    assert dump(folder, "--index-sanity-check", name=f"{SEGMENT}.index") == 1
    assert "is corrupt: its size 7 is not a multiple of 8" in capsys.readouterr().err
    (folder / f"{SEGMENT}.index").write_bytes(b"")
    assert dump(folder, name=f"{SEGMENT}.index") == 0
    assert capsys.readouterr().out.endswith(f"{SEGMENT}.index is empty.\n")
