"""One log in a temporary folder, batches to append, and functions that read its contents."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from moldau.base.clock import ManualClock
from moldau.base.ids import TopicPartition, Uuid
from moldau.protocol.records import BatchHeader, Record, build_batch, iter_batches, iter_records
from moldau.storage.disk.disk import Disk, PosixDisk
from moldau.storage.log.config import LogConfig
from moldau.storage.log.log import Log

NOW = 1_700_000_000_000
TOPIC_ID = Uuid(b"0123456789abcdef")
ORDERS = TopicPartition("orders", 0)


class Folder:
    """The folder of one partition with its clock and config; logs can be opened on it repeatedly."""

    def __init__(self, parent: Path, disk: Disk | None = None, **config: Any) -> None:
        self.path = parent / "orders-0"
        self.clock = ManualClock(NOW)
        self.disk = disk or PosixDisk()
        self.config = LogConfig(**config)

    def open(self, **options: Any) -> Log:
        options.setdefault("clean_shutdown", False)
        topic_id = options.pop("topic_id", TOPIC_ID)
        return Log.open(self.disk, self.clock, str(self.path), ORDERS, topic_id, self.config, **options)

    def names(self, suffix: str = "") -> list[str]:
        return sorted(path.name for path in self.path.iterdir() if path.name.endswith(suffix))

    def copy(self, parent: Path) -> Folder:
        """Copy the folder as a crash at this moment would leave it."""
        other = Folder(parent)
        other.config = self.config
        other.clock = ManualClock(self.clock.time_ms())
        shutil.copytree(self.path, other.path)
        return other


def batch(count: int = 1, *, value: bytes = b"value", timestamp: int = NOW, **options: Any) -> bytearray:
    """Make a batch as a producer sends it, with offsets from `base_offset` (0 by default)."""
    base = options.get("base_offset", 0)
    records = [Record(base + n, timestamp, b"key-%d" % n, value) for n in range(count)]
    return build_batch(records, **options)


def marker(
    *, commit: bool, producer_id: int, producer_epoch: int = 0, coordinator_epoch: int = 0
) -> bytearray:
    key = b"\0\0" + (b"\0\1" if commit else b"\0\0")
    value = b"\0\0" + coordinator_epoch.to_bytes(4, "big")
    return build_batch(
        [Record(0, NOW, key, value)],
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        is_transactional=True,
        is_control=True,
    )


def fill(log: Log, batches: int, count: int = 10, *, value: bytes = b"v" * 100, step_ms: int = 1) -> None:
    """Append as the leader of epoch 0 whose high watermark is the log end offset."""
    for _ in range(batches):
        time = NOW + log.log_end_offset // count * step_ms
        log.append_as_leader(batch(count, value=value, timestamp=time), 0)
    log.high_watermark = log.log_end_offset


def headers(log: Log, *, blocking: bool = True, max_bytes: int = 50_000) -> list[BatchHeader]:
    """Return the headers of all batches from the log start offset to the log end offset."""
    found: list[BatchHeader] = []
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        result = log.reader.read(offset, max_bytes, upper_bound=log.log_end_offset, blocking=blocking)
        if result is None:
            result = log.reader.read(offset, max_bytes, upper_bound=log.log_end_offset, blocking=True)
        assert result is not None
        if not result.parts:
            break
        found += batches_in(result.parts)
        assert result.next_offset == found[-1].next_offset
        offset = result.next_offset
    return found


def batches_in(parts: Sequence[memoryview]) -> list[BatchHeader]:
    data = b"".join(parts)
    found = [header for _, header in iter_batches(data)]
    assert sum(header.size_in_bytes for header in found) == len(data), "not whole batches"
    return found


def records(log: Log) -> list[Record]:
    found: list[Record] = []
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        result = log.reader.read(offset, 1 << 20, upper_bound=log.log_end_offset, blocking=True)
        assert result is not None
        if not result.parts:
            break
        data = memoryview(b"".join(result.parts))
        for position, header in iter_batches(data):
            found += iter_records(data[position : position + header.size_in_bytes], header)
        offset = result.next_offset
    return found
