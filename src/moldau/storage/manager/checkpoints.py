"""Writing the checkpoint files of the data directories from the offsets of their logs.

Each file covers all logs of its directory. A failing disk is reported; the other directories are written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from moldau.base.errors import KafkaError
from moldau.base.ids import TopicPartition
from moldau.storage.directories.checkpoints import (
    LOG_START_OFFSET_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
    REPLICATION_OFFSET_CHECKPOINT,
)
from moldau.storage.directories.directories import LogDirectories
from moldau.storage.disk.disk import storage_failure
from moldau.storage.log.log import Log
from moldau.storage.manager.table import LogTable


class CheckpointWriter:
    def __init__(
        self, table: LogTable, directories: LogDirectories, on_failure: Callable[[KafkaError], None]
    ) -> None:
        self._table = table
        self._directories = directories
        self._on_failure = on_failure

    async def write_recovery_points(self) -> None:
        await self._write(RECOVERY_POINT_CHECKPOINT, _recovery_point)

    async def write_log_starts(self) -> None:
        await self._write(LOG_START_OFFSET_CHECKPOINT, _log_start_to_store)

    async def write_high_watermarks(self) -> None:
        await self._write(REPLICATION_OFFSET_CHECKPOINT, _high_watermark)

    async def write_all(self, paths: Iterable[str] | None = None) -> list[KafkaError]:
        """Write all three in some or all directories; return the failures, which are already reported."""
        chosen = self._directories.paths if paths is None else list(paths)
        return [
            error
            for name, offset_of in _CHECKPOINTS.items()
            for error in await self._write(name, offset_of, chosen)
        ]

    async def write_cleaner_offsets(self, paths: Iterable[str]) -> None:
        for path in paths:
            try:
                await self._directories[path].write_cleaner_offsets()
            except OSError as error:
                self._on_failure(storage_failure(error, path))

    async def _write(
        self, name: str, offset_of: Callable[[Log], int | None], paths: Iterable[str] | None = None
    ) -> list[KafkaError]:
        failures: list[KafkaError] = []
        for path in self._directories.paths if paths is None else paths:
            try:
                await self._directories[path].write(name, partial(self._collect, path, offset_of))
            except OSError as error:
                failures.append(storage_failure(error, path))
                self._on_failure(failures[-1])
        return failures

    def _collect(self, path: str, offset_of: Callable[[Log], int | None]) -> dict[TopicPartition, int]:
        """The present offsets of the logs in a directory, which may be thousands."""
        offsets = (
            (log.topic_partition, offset_of(log))
            for log in self._table.all()
            if log.directory.rpartition("/")[0] == path
        )
        return {topic_partition: offset for topic_partition, offset in offsets if offset is not None}


def _recovery_point(log: Log) -> int:
    return log.flusher.recovery_point


def _high_watermark(log: Log) -> int:
    return log.high_watermark


def _log_start_to_store(log: Log) -> int | None:
    """None for a log that starts with its first segment: recovery finds that by itself.

    The records before the first segment may be in the remote tier.
    """
    start = log.log_start_offset
    return start if log.config.tiered or start > log.segments.items[0].base_offset else None


_CHECKPOINTS: dict[str, Callable[[Log], int | None]] = {
    RECOVERY_POINT_CHECKPOINT: _recovery_point,
    LOG_START_OFFSET_CHECKPOINT: _log_start_to_store,
    REPLICATION_OFFSET_CHECKPOINT: _high_watermark,
}
