"""What the logs of a node need from time to time; the node calls each coroutine at its own interval.

| coroutine | setting for the interval |
|---|---|
| `flush_due` | log.flush.scheduler.interval.ms, at most seconds: segments that were closed are waiting |
| `retention` | log.retention.check.interval.ms |
| `write_recovery_points`, `write_log_starts` | log.flush.(offset, start.offset).checkpoint.interval.ms |
| `write_high_watermarks` | replica.high.watermark.checkpoint.interval.ms |
| `remove_deleted_files` | every second or so; what is removed has waited for file.delete.delay.ms |
| `expire_producers` | producer.id.expiration.check.interval.ms |
| `check` | as often as the operator wants damage on disk looked for |

Each goes on with the other logs when one of them fails; failing disks are reported to the log manager. On
the loop it pauses now and then, so that thousands of logs do not hold up requests.
"""

from __future__ import annotations

import logging
import posixpath
from collections.abc import Callable, Iterable, Mapping
from functools import partial

from moldau.base.clock import Clock
from moldau.base.errors import KafkaError
from moldau.base.ids import TopicPartition
from moldau.base.loop_slice import LoopSlice
from moldau.base.pool import Pool
from moldau.storage.cleaner.manager import LogCleaner
from moldau.storage.directories.checkpoints import (
    LOG_START_OFFSET_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
    REPLICATION_OFFSET_CHECKPOINT,
)
from moldau.storage.directories.directories import LogDirectories
from moldau.storage.disk.disk import Disk, storage_failure
from moldau.storage.log.log import Log

_logger = logging.getLogger(__name__)

LogTable = Mapping[TopicPartition, Log]


class LogUpkeep:
    """Works on the log manager's own tables."""

    def __init__(
        self,
        disk: Disk,
        clock: Clock,
        pool: Pool,
        logs: LogTable,
        future_logs: LogTable,
        directories: LogDirectories,
        cleaner: LogCleaner,
        on_failure: Callable[[KafkaError], None],
    ) -> None:
        self._disk = disk
        self._clock = clock
        self._pool = pool
        self._logs = logs
        self._future_logs = future_logs
        self._directories = directories
        self._cleaner = cleaner
        self._on_failure = on_failure
        self._doomed: list[tuple[int, str]] = []

    async def flush_due(self) -> None:
        """Sync the logs whose `flush.ms` is over, and segments that were closed."""
        now_ms = self._clock.time_ms()
        for log in self._all_logs():
            if self._is_current(log) and log.flusher.is_due(now_ms):
                await self._guarded(log, log.flusher.flush)

    async def retention(self) -> int:
        """Let go of segments that are too old, too many, or before the log start; how many.

        A log under the cleaner's hands is left for the next time.
        """
        now_ms, deleted, turn = self._clock.time_ms(), 0, LoopSlice(self._clock)
        for log in self._all_logs():
            if not self._is_current(log) or self._cleaner.is_busy(log.topic_partition):
                continue
            try:
                deleted += len(log.delete_old_segments(now_ms))
            except KafkaError as error:
                self._on_failure(error)
            await turn.pause()
        return deleted

    async def write_recovery_points(self) -> None:
        await self._write(RECOVERY_POINT_CHECKPOINT, _recovery_point)

    async def write_log_starts(self) -> None:
        await self._write(LOG_START_OFFSET_CHECKPOINT, _log_start_to_note)

    async def write_high_watermarks(self) -> None:
        await self._write(REPLICATION_OFFSET_CHECKPOINT, _high_watermark)

    async def write_checkpoints(self, paths: Iterable[str] | None = None) -> list[KafkaError]:
        """All three, in all directories or in some; gives back what went wrong, reported already."""
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

    async def remove_deleted_files(self) -> None:
        """Remove files and folders whose time has come."""
        now_ms = self._monotonic_ms()
        due = [path for due_ms, path in self._doomed if due_ms <= now_ms]
        self._doomed = [item for item in self._doomed if item[0] > now_ms]
        for path in due:
            await self._remove_folder(path)
        for log, error in await self._pool.run(_remove_deleted_files, self._all_logs()):
            self._report(log, error)

    async def _remove_folder(self, path: str) -> None:
        if self._directories[posixpath.dirname(path)].online:
            try:
                await self._pool.run(self._disk.remove_tree, path)
                _logger.info("Deleted %s", path)
            except OSError as error:
                self._on_failure(storage_failure(error, path))

    def remove_later(self, path: str, delay_ms: int) -> None:
        """A folder that was renamed for deletion."""
        self._doomed.append((self._monotonic_ms() + delay_ms, path))

    def _monotonic_ms(self) -> int:
        # Delays do not change because somebody sets the clock.
        return int(self._clock.monotonic() * 1000)

    async def expire_producers(self, expiration_ms: int) -> None:
        """Forget idempotent producers that were silent for `producer.id.expiration.ms`."""
        now_ms = self._clock.time_ms()
        for log in self._all_logs():
            log.producer_state.expiration_ms = expiration_ms
            log.producer_state.remove_expired(now_ms)

    async def check(self) -> int:
        """Look at every batch of all closed segments, one log after the other; how many are damaged."""
        damaged = 0
        for log in self._all_logs():
            if self._is_current(log):
                damaged += await self._guarded(log, log.reader.check) or 0
        return damaged

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
        """The offsets of the logs in a directory, as they are now. There may be thousands."""
        noted = (
            (log.topic_partition, offset_of(log))
            for log in self._all_logs()
            if log.directory.rpartition("/")[0] == path
        )
        return {topic_partition: offset for topic_partition, offset in noted if offset is not None}

    async def _guarded(self, log: Log, work: Callable[[], int]) -> int | None:
        """What the work in the pool gives, or None after reporting what the disk did."""
        try:
            return await self._pool.run(work)
        except KafkaError as error:
            self._report(log, error)
            return None

    def _report(self, log: Log, error: KafkaError) -> None:
        """Unless the log was deleted meanwhile: then it is no wonder that files are missing."""
        if self._is_current(log):
            self._on_failure(error)

    def _is_current(self, log: Log) -> bool:
        topic_partition = log.topic_partition
        return self._logs.get(topic_partition) is log or self._future_logs.get(topic_partition) is log

    def _all_logs(self) -> list[Log]:
        return [*self._logs.values(), *self._future_logs.values()]


def _recovery_point(log: Log) -> int:
    return log.flusher.recovery_point


def _high_watermark(log: Log) -> int:
    return log.high_watermark


def _log_start_to_note(log: Log) -> int | None:
    """None for a log that begins where its first segment does: that needs no note."""
    start = log.log_start_offset
    return start if start > log.segments.items[0].base_offset else None


_CHECKPOINTS: dict[str, Callable[[Log], int | None]] = {
    RECOVERY_POINT_CHECKPOINT: _recovery_point,
    LOG_START_OFFSET_CHECKPOINT: _log_start_to_note,
    REPLICATION_OFFSET_CHECKPOINT: _high_watermark,
}


def _remove_deleted_files(logs: list[Log]) -> list[tuple[Log, KafkaError]]:
    errors: list[tuple[Log, KafkaError]] = []
    for log in logs:
        try:
            log.segments.remove_deleted_files()
        except KafkaError as error:
            errors.append((log, error))
    return errors
