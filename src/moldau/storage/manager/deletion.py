"""Deleting logs: their directories are renamed at once and removed after `log.segment.delete.delay.ms`."""

from __future__ import annotations

import logging
import posixpath
from collections.abc import Callable

from moldau.base.clock import Clock
from moldau.base.errors import KafkaError
from moldau.base.ids import Randomness, TopicPartition, Uuid, random_uuid
from moldau.base.pool import Pool
from moldau.storage.directories.directories import LogDirectories
from moldau.storage.directories.folders import delete_folder, stray_folder
from moldau.storage.disk.disk import Disk, storage_failure
from moldau.storage.log.log import Log
from moldau.storage.manager.failures import DirectoryFailures

logger = logging.getLogger(__name__)


class LogDeletion:
    """Renames and removes the directories of logs that have left the table."""

    def __init__(
        self,
        disk: Disk,
        clock: Clock,
        pool: Pool,
        randomness: Randomness,
        directories: LogDirectories,
        failures: DirectoryFailures,
        *,
        delay_ms: int,
    ) -> None:
        self._disk = disk
        self._clock = clock
        self._pool = pool
        self._randomness = randomness
        self._directories = directories
        self._failures = failures
        self.delay_ms = delay_ms
        self._pending: list[tuple[int, str]] = []

    async def delete(self, log: Log) -> None:
        """Mark the directory for deletion and remove it after the delay."""
        await self._rename(log, delete_folder)
        self.remove_later(log.directory)

    async def set_aside(self, log: Log) -> None:
        """Mark the directory as stray, for an operator to look at."""
        await self._rename(log, stray_folder)

    async def _rename(self, log: Log, name: Callable[[TopicPartition, Uuid], str]) -> None:
        folder = name(log.topic_partition, random_uuid(self._randomness))
        path = posixpath.join(posixpath.dirname(log.directory), folder)
        try:
            await self._pool.run(log.rename_directory, path)
        except KafkaError as error:
            self._failures.report(error)

    def remove_later(self, path: str) -> None:
        """Remove a directory that is already marked for deletion, after the delay."""
        self._pending.append((self._monotonic_ms() + self.delay_ms, path))

    async def remove_due(self) -> None:
        """Remove the directories whose delay has passed."""
        now_ms = self._monotonic_ms()
        due = [path for due_ms, path in self._pending if due_ms <= now_ms]
        self._pending = [item for item in self._pending if item[0] > now_ms]
        for path in due:
            if self._directories[posixpath.dirname(path)].online:
                try:
                    await self._pool.run(self._disk.remove_tree, path)
                    logger.info("Deleted %s", path)
                except OSError as error:
                    self._failures.report(storage_failure(error, path))

    def _monotonic_ms(self) -> int:
        # Setting the wall clock does not change delays.
        return int(self._clock.monotonic() * 1000)
