"""A node holds thousands of logs: each must be small, and quick to open."""

from __future__ import annotations

import gc
import time
import tracemalloc
from pathlib import Path

from moldau.base.clock import ManualClock
from moldau.base.ids import TopicPartition
from moldau.storage.disk import PosixDisk
from moldau.storage.log import Log
from moldau.storage.log_config import LogConfig
from moldau.storage.open_files import OpenFiles
from tests.unit.storage.one_log import TOPIC_ID, fill

LOGS = 100


def open_all(folder: Path, files: OpenFiles, *, clean: bool) -> list[Log]:
    clock, config = ManualClock(), LogConfig()
    return [
        Log.open(
            files.disk,
            clock,
            str(folder / f"t-{number}"),
            TopicPartition("t", number),
            TOPIC_ID,
            config,
            clean_shutdown=clean,
            files=files,
        )
        for number in range(LOGS)
    ]


def test_a_log_takes_less_than_ten_kilobytes(tmp_path: Path) -> None:
    files = OpenFiles(PosixDisk(), limit=20)
    open_all(tmp_path / "warm", files, clean=False)
    gc.collect()
    tracemalloc.start()
    logs = open_all(tmp_path / "empty", files, clean=False)
    gc.collect()
    empty, _ = tracemalloc.get_traced_memory()
    for log in logs:
        fill(log, 100)
    gc.collect()
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert empty / LOGS < 8_000
    assert used / LOGS < 10_000
    assert len(files) <= 20


def test_opening_after_a_clean_shutdown_is_quick(tmp_path: Path) -> None:
    files = OpenFiles(PosixDisk(), limit=100)
    for log in open_all(tmp_path, files, clean=False):
        fill(log, 100)
        log.close()
    began = time.process_time()
    logs = open_all(tmp_path, files, clean=True)
    spent = time.process_time() - began
    assert all(log.log_end_offset == 1000 for log in logs)
    assert spent / LOGS < 0.002, "usually a third of a millisecond"
