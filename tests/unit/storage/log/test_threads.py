"""Reads in threads while the event loop appends, rolls, truncates and deletes."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from moldau.base.errors import ErrorCode, KafkaError
from moldau.protocol.records import check_crc, iter_batches
from moldau.storage.disk.disk import PosixDisk
from moldau.storage.disk.open_files import OpenFiles
from moldau.storage.log.log import Log
from tests.unit.storage.log.one_log import Folder, fill

SECONDS = 1.5


class Reader(threading.Thread):
    """Read whole batches in order, repeatedly, and collect errors."""

    def __init__(self, log: Log, seed: int, *, blocking: bool) -> None:
        super().__init__()
        self.log = log
        self.random = random.Random(seed)
        self.blocking = blocking
        self.stopped = False
        self.batches = 0
        self.problem: BaseException | None = None

    def run(self) -> None:
        try:
            while not self.stopped:
                self.read_on(self.random.randint(self.log.log_start_offset, self.log.log_end_offset))
        except BaseException as error:
            self.problem = error

    def read_on(self, offset: int) -> None:
        for _ in range(20):
            end = self.log.log_end_offset
            try:
                result = self.log.reader.read(
                    offset, self.random.choice([500, 5000, 300_000]), upper_bound=end, blocking=self.blocking
                )
            except KafkaError as error:
                assert error.code == ErrorCode.OFFSET_OUT_OF_RANGE, error
                return
            if result is None or not result.parts:
                return
            data = b"".join(result.parts)
            length = 0
            for position, header in iter_batches(data):
                assert check_crc(data, position, header)
                assert header.next_offset > offset
                assert header.base_offset < end
                offset = header.next_offset
                length = position + header.size_in_bytes
                self.batches += 1
            assert length == len(data)


@pytest.mark.parametrize("cutting", [False, True])
def test_concurrent_readers_see_only_valid_batches(tmp_path: Path, cutting: bool) -> None:
    folder = Folder(tmp_path, segment_bytes=50_000, index_interval_bytes=500, retention_bytes=400_000)
    log = folder.open(files=OpenFiles(folder.disk, limit=6))
    fill(log, 50)
    readers = [Reader(log, seed, blocking=seed % 2 == 0) for seed in range(4)]
    for reader in readers:
        reader.start()
    chance = random.Random(5)
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        fill(log, chance.randint(1, 20), chance.randint(1, 20), value=b"v" * chance.choice([10, 100, 1000]))
        if chance.random() < 0.2:
            log.delete_old_segments(folder.clock.time_ms())
            folder.clock.advance(100_000)
            log.segments.remove_deleted_files()
        if cutting and chance.random() < 0.3:
            log.truncate_to(
                chance.randint(max(log.log_start_offset, log.log_end_offset - 800), log.log_end_offset)
            )
    for reader in readers:
        reader.stopped = True
    for reader in readers:
        reader.join()
        assert reader.problem is None, repr(reader.problem)
    assert sum(reader.batches for reader in readers) > 100


def test_flush_and_check_in_a_thread(tmp_path: Path) -> None:
    folder = Folder(tmp_path, segment_bytes=50_000)
    log = folder.open()
    problems: list[BaseException] = []
    stop = threading.Event()

    def flush() -> None:
        try:
            while not stop.is_set():
                point = log.flusher.flush()
                assert point <= log.log_end_offset
                assert log.reader.check() == 0
        except BaseException as error:
            problems.append(error)

    thread = threading.Thread(target=flush)
    thread.start()
    chance = random.Random(5)
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        fill(log, 10)
        if chance.random() < 0.1:
            log.truncate_to(chance.randint(max(0, log.log_end_offset - 500), log.log_end_offset))
            assert log.flusher.recovery_point <= log.log_end_offset
    stop.set()
    thread.join()
    assert problems == []


class WatchedDisk(PosixDisk):
    """Calls a hook before segments are renamed and directories synced, and keeps the order of both."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.hook: Callable[[str], None] = lambda path: None

    def rename(self, source: str, target: str) -> None:
        if target.endswith(".deleted"):
            self.hook(target)
            self.done.append("rename")
        super().rename(source, target)

    def sync_dir(self, path: str) -> None:
        self.hook(path)
        super().sync_dir(path)
        self.done.append(path)


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.001)


@pytest.mark.parametrize("directory_synced", ["before the renames", "around the renames"])
def test_renames_of_a_truncation_during_a_flush_are_synced(tmp_path: Path, directory_synced: str) -> None:
    disk = WatchedDisk()
    folder = Folder(tmp_path, disk, segment_bytes=5000)
    log = folder.open()
    fill(log, 40)
    log.flusher.flush()
    flush = threading.Thread(target=log.flusher.flush)
    waiting = threading.Event()

    def flush_first(path: str) -> None:
        if path.endswith(".deleted"):
            disk.hook = lambda path: None
            flush.start()
            wait_for(lambda: log.flusher.directory_synced)

    def let_truncate(path: str) -> None:
        if path == str(tmp_path):
            disk.hook = lambda path: None
            generation = log.segments.generation
            waiting.set()
            wait_for(lambda: log.segments.generation == generation + 2)

    if directory_synced == "before the renames":
        fill(log, 10)
        disk.hook = flush_first
    else:
        log.truncate_to(305)
        fill(log, 10)
        disk.hook = let_truncate
        flush.start()
        assert waiting.wait(10)
    disk.done.clear()
    log.truncate_to(105)
    flush.join()
    assert "rename" in disk.done
    fill(log, 1)
    log.flusher.flush()
    assert str(folder.path) in disk.done[len(disk.done) - disk.done[::-1].index("rename") :]
