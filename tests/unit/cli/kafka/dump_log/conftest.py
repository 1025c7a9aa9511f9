"""A folder with a segment."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from tests.unit.cli.kafka.dump_log.segments import SEGMENT, batch


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two batches of two records, with the indexes that belong to them."""
    first, second = batch(0, "a", "b"), batch(2, "c", "d", codec=4)
    (tmp_path / f"{SEGMENT}.log").write_bytes(first + second)
    (tmp_path / f"{SEGMENT}.index").write_bytes(struct.pack(">ii", 3, len(first)))
    (tmp_path / f"{SEGMENT}.timeindex").write_bytes(struct.pack(">qi", 1003, 3))
    (tmp_path / f"{SEGMENT}.txnindex").write_bytes(struct.pack(">hqqqq", 0, 7, 1, 2, 3))
    return tmp_path
