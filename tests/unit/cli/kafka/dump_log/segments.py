"""Segments for the tests of kafka-dump-log."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from moldau.cli.kafka.dump_log.command import main
from moldau.protocol.records import Record, build_batch

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


def write_log(folder: Path, *records: tuple[bytes | None, bytes | None], is_control: bool = False) -> None:
    made = [Record(number, 1000, key, value) for number, (key, value) in enumerate(records)]
    (folder / f"{SEGMENT}.log").write_bytes(bytes(build_batch(made, is_control=is_control)))
