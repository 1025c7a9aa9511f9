"""The memory of a log and the cost to open it: a node has thousands of logs."""

from __future__ import annotations

import gc
import tracemalloc
from pathlib import Path

from moldau.base.clock import ManualClock
from moldau.base.ids import TopicPartition
from moldau.storage.disk.disk import File, PosixDisk
from moldau.storage.disk.open_files import OpenFiles
from moldau.storage.log.config import LogConfig
from moldau.storage.log.log import Log
from tests.unit.storage.log.one_log import TOPIC_ID, fill

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
    assert len(files) == 20, "the limit of open files"


class CountingDisk(PosixDisk):
    """Count the opened files."""

    opened = 0

    def open(self, path: str, *, create: bool = False, read_only: bool = False) -> File:
        self.opened += 1
        return super().open(path, create=create, read_only=read_only)


def test_opening_after_a_clean_shutdown_opens_few_files(tmp_path: Path) -> None:
    for log in open_all(tmp_path, OpenFiles(PosixDisk(), limit=100), clean=False):
        fill(log, 100)
        log.close()
    disk = CountingDisk()
    logs = open_all(tmp_path, OpenFiles(disk, limit=100), clean=True)
    assert all(log.log_end_offset == 1000 for log in logs)
    assert disk.opened <= 3 * LOGS
