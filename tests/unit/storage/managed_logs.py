"""Log managers in a temporary folder, and records for their logs."""

from __future__ import annotations

import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from moldau.base.clock import ManualClock
from moldau.base.ids import TopicPartition, Uuid
from moldau.base.pool import InlinePool
from moldau.protocol.records import Record, build_batch, iter_batches, iter_records
from moldau.storage.cleaner.runner import InlineRunner
from moldau.storage.disk.disk import Disk, PosixDisk
from moldau.storage.log.config import LogConfig
from moldau.storage.log.log import Log
from moldau.storage.manager.failures import DirectoryFailure
from moldau.storage.manager.manager import LogManager

TOPIC_ID = Uuid(b"topic-id-16bytes")
ORDERS = TopicPartition("orders", 0)
COMPACT = LogConfig(
    cleanup_policy=frozenset({"compact"}), min_cleanable_dirty_ratio=0.0, delete_retention_ms=10_000
)

Pair = tuple[bytes | None, bytes | None]


class World:
    """The arguments of a node's log manager, kept across restarts."""

    def __init__(self, folder: Path, directories: int = 1, disk: Disk | None = None) -> None:
        self.clock = ManualClock()
        self.disk = disk or PosixDisk()
        self.paths = [str(folder / f"data{number}") for number in range(1, directories + 1)]
        self.failures: list[DirectoryFailure] = []
        self.replaced: list[TopicPartition] = []

    def manager(self, **options: Any) -> LogManager:
        pool = InlinePool()
        ids = {path: Uuid(path.encode()[-16:]) for path in self.paths}
        return LogManager(
            self.disk, self.clock, pool, random.Random(1), ids,
            options.pop("runner", None) or InlineRunner(self.disk, pool),
            on_directory_failure=self.failures.append,
            on_log_replaced=lambda topic_partition, log: self.replaced.append(topic_partition),
            **options,
        )  # fmt: skip

    async def start(self, config: LogConfig | None = None, **options: Any) -> LogManager:
        manager = self.manager(**options)
        await manager.load(lambda topic: config or LogConfig())
        return manager


def batch(pairs: Iterable[Pair], timestamp: int, **options: Any) -> bytearray:
    records = [Record(number, timestamp, key, value) for number, (key, value) in enumerate(pairs)]
    return build_batch(records, **options)


def append(log: Log, pairs: Iterable[Pair], timestamp: int = 1_700_000_000_000, **options: Any) -> None:
    """Append as a leader whose high watermark is the log end offset."""
    log.append_as_leader(batch(pairs, timestamp, **options), 0)
    log.high_watermark = log.log_end_offset


def stored(log: Log) -> list[Record]:
    """Return all records from the log start offset."""
    found: list[Record] = []
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        result = log.reader.read(offset, 1 << 20, upper_bound=log.log_end_offset, blocking=True)
        assert result is not None
        if not result.parts:
            break
        data = b"".join(result.parts)
        for position, header in iter_batches(data):
            if not header.is_control:
                found += iter_records(memoryview(data)[position : position + header.size_in_bytes], header)
            offset = header.next_offset
    return [record for record in found if record.offset >= log.log_start_offset]


def latest(records: Iterable[Record]) -> dict[bytes | None, bytes | None]:
    return {record.key: record.value for record in records}


def names(folder: str) -> list[str]:
    return sorted(path.name for path in Path(folder).iterdir())


def folders(folder: str) -> list[str]:
    """Return the names of the partition folders without their suffixes."""
    return sorted(path.name.split(".")[0] for path in Path(folder).iterdir() if path.is_dir())


def damage(path: str) -> None:
    """Damage the last byte of a file."""
    content = bytearray(Path(path).read_bytes())
    content[-1] ^= 0xFF
    Path(path).write_bytes(content)
