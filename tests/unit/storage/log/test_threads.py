"""Reads in threads while the event loop appends, rolls, truncates and deletes."""

from __future__ import annotations

import random
import threading
import time
from pathlib import Path

import pytest

from moldau.base.errors import ErrorCode, KafkaError
from moldau.protocol.records import check_crc, iter_batches
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
