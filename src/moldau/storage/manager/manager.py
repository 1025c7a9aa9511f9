"""The log manager: all logs of a node, in one or more data directories.

It loads the logs at start, deletes and truncates them together with their cleaner state, and closes them at
shutdown, so that the next start needs no recovery. Its parts do the rest: `table` holds the logs, `creator`
makes new ones, `moves` moves them between directories, `upkeep` maintains them, `checkpoints` writes the
offset files, `cleaner` compacts, `failures` takes the directories of failed disks offline.

The log manager has no tasks or threads of its own: the node calls the coroutines at the intervals of its
configs, and blocking work runs in the thread pool.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from moldau.base.clock import Clock
from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import Randomness, TopicPartition, Uuid
from moldau.base.json_log import event
from moldau.base.pool import Pool
from moldau.storage.cleaner.job import CleanerRunner, CleanerSettings
from moldau.storage.cleaner.manager import LogCleaner
from moldau.storage.directories.directories import LogDirectories
from moldau.storage.directories.directory import LogDirectory
from moldau.storage.disk.disk import Disk, LogDirectoryFailed
from moldau.storage.disk.open_files import DEFAULT_LIMIT, OpenFiles
from moldau.storage.log.config import LogConfig
from moldau.storage.log.log import Log, RemoteTierState
from moldau.storage.manager.checkpoints import CheckpointWriter
from moldau.storage.manager.creation import LogCreator
from moldau.storage.manager.deletion import LogDeletion
from moldau.storage.manager.failures import DirectoryFailure, DirectoryFailures
from moldau.storage.manager.loading import ConfigOf, LoadedDirectory, LogLoader
from moldau.storage.manager.replica_moves import ReplicaMoves
from moldau.storage.manager.table import LogTable
from moldau.storage.manager.upkeep import LogUpkeep

logger = logging.getLogger(__name__)

IsStray = Callable[[TopicPartition, Uuid | None], bool]


@dataclass(frozen=True, slots=True)
class LogManagerSettings:
    """The broker configs that concern all logs."""

    recovery_threads_per_data_dir: int = 2
    producer_id_expiration_ms: int = 86_400_000
    delete_delay_ms: int = 60_000
    open_files: int = DEFAULT_LIMIT


class LogManager:
    def __init__(
        self,
        disk: Disk,
        clock: Clock,
        pool: Pool,
        randomness: Randomness,
        directories: Mapping[str, Uuid | None],
        runner: CleanerRunner,
        *,
        settings: LogManagerSettings | None = None,
        cleaner_settings: CleanerSettings | None = None,
        on_directory_failure: Callable[[DirectoryFailure], None] = lambda failure: None,
        on_log_replaced: Callable[[TopicPartition, Log], None] = lambda topic_partition, log: None,
    ) -> None:
        """`directories`: absolute path of each data directory, with its id from `meta.properties`."""
        settings = settings or LogManagerSettings()
        self.open_files = open_files = OpenFiles(disk, settings.open_files)
        self._pool = pool
        self._threads = max(1, settings.recovery_threads_per_data_dir)
        self.previous_broker_epoch: int | None = None
        self.table = LogTable()
        self.directories = LogDirectories(disk, pool, directories)
        self.failures = DirectoryFailures(
            self.table,
            self.directories,
            open_files,
            on_lost=self._abandon,
            on_failure=on_directory_failure,
        )
        self.checkpoints = CheckpointWriter(self.table, self.directories, self.failures.report)
        self._deletion = LogDeletion(
            disk, clock, pool, randomness, self.directories, self.failures, delay_ms=settings.delete_delay_ms
        )
        self._loader = LogLoader(
            disk, clock, pool, open_files, randomness,
            threads=self._threads,
            producer_expiration_ms=settings.producer_id_expiration_ms,
        )  # fmt: skip
        self.creator = LogCreator(self.table, self.directories, self._loader, self.checkpoints, self.failures)
        self.cleaner = LogCleaner(
            disk, clock, pool, runner, cleaner_settings or CleanerSettings(),
            self.table.current, self.directories, self.failures.report,
        )  # fmt: skip
        self.moves = ReplicaMoves(
            pool, randomness, self.table, self.directories, self._loader,
            self.cleaner, self.checkpoints, self._deletion, self.failures, on_log_replaced,
        )  # fmt: skip
        self.upkeep = LogUpkeep(clock, pool, self.table, self.cleaner, self._deletion, self.failures)
        self._claimed = False

    def update_settings(self, settings: LogManagerSettings) -> None:
        """Apply changed dynamic configs; the limit of open files stays."""
        self._threads = max(1, settings.recovery_threads_per_data_dir)
        self._deletion.delay_ms = settings.delete_delay_ms
        self._loader.producer_expiration_ms = settings.producer_id_expiration_ms

    def _abandon(self, log: Log) -> None:
        """Stop cleaning and moving a log of a failed directory."""
        self.cleaner.abort(log.topic_partition)
        if self.table.future.get(log.topic_partition) is log:
            self.moves.ended(log.topic_partition)

    async def claim(self) -> None:
        """Lock the directories for this node and read their checkpoints; once, before anything is written."""
        if self._claimed:
            return
        self.previous_broker_epoch, failures = await self.directories.claim()
        self._claimed = True
        for failure in failures:
            self.failures.report(failure)

    async def load(
        self, config_of: ConfigOf, is_stray: IsStray = lambda topic_partition, topic_id: False
    ) -> None:
        """Open all logs in the directories; recover them if their directory was not shut down cleanly.

        A directory whose disk fails is left out. Raises `KafkaError` if another node uses a directory, if no
        directory is online, or if the name of a folder is not that of a partition.
        """
        await self.claim()
        duplicates: list[Log] = []
        try:
            online = self.directories.online
            results = await asyncio.gather(*(self._loader.load(item, config_of) for item in online))
            for directory, loaded in zip(online, results, strict=True):
                duplicates += self._adopt(directory, loaded)
            if not self.directories.online:
                reasons = "; ".join(f"{item.path}: {item.failure}" for item in self.directories)
                raise _storage_error(f"None of the log directories can be used: {reasons}")
        except KafkaError:
            self.directories.release()
            raise
        for log in duplicates:
            await self._deletion.set_aside(log)
            logger.warning("A move was interrupted: the shorter replica is set aside as %s", log.directory)
        for log in self.table.all():
            if is_stray(log.topic_partition, log.topic_id):
                self.table.remove(log)
                await self._deletion.set_aside(log)
                logger.warning(
                    "%s is not in the cluster metadata: it is set aside as %s",
                    log.topic_partition,
                    log.directory,
                )
        await self.moves.resume_all()
        logger.info("Loaded %d logs", len(self.table.current), extra=event("log_directory.loaded"))

    def _adopt(self, directory: LogDirectory, loaded: LoadedDirectory) -> list[Log]:
        """Add the logs of a directory to the table; return those of partitions that have another log."""
        if loaded.failure is not None:
            self.failures.take_offline(directory, str(loaded.failure))
            return []
        directory.loaded = True
        found = {log.topic_partition for log in (*loaded.current, *loaded.future)}
        directory.cleaner_offsets = {
            topic_partition: offset
            for topic_partition, offset in directory.cleaner_offsets.items()
            if topic_partition in found
        }
        for path in loaded.deleted:
            self._deletion.remove_later(path)
        duplicates: list[Log] = []
        for table, logs in ((self.table.current, loaded.current), (self.table.future, loaded.future)):
            for log in logs:
                other = table.setdefault(log.topic_partition, log)
                if other is not log:
                    table[log.topic_partition], shorter = _longer_and_shorter(other, log)
                    duplicates.append(shorter)
        return duplicates

    async def delete(self, *topic_partitions: TopicPartition) -> None:
        """Remove the logs of partitions; their folders are renamed at once and removed after the delay."""
        touched: dict[str, None] = {}
        for topic_partition in topic_partitions:
            async with self.table.exclusive(topic_partition):
                await self.cleaner.pause(topic_partition)
                tables = (self.table.current, self.table.future)
                found = [table.pop(topic_partition, None) for table in tables]
                self.moves.ended(topic_partition)
                self.cleaner.resume(topic_partition)
                for log in found:
                    if log is not None:
                        directory = self.directories.of(log)
                        directory.cleaner_offsets.pop(topic_partition, None)
                        touched[directory.path] = None
                        await self._deletion.delete(log)
        await self.checkpoints.write_all(touched)
        await self.checkpoints.write_cleaner_offsets(touched)

    def update_config(self, topic_partition: TopicPartition, config: LogConfig) -> None:
        for table in (self.table.current, self.table.future):
            log = table.get(topic_partition)
            if log is not None:
                log.update_config(config)
        if not config.compact:
            self.cleaner.abort(topic_partition)

    async def truncate_to(
        self, topic_partition: TopicPartition, offset: int, *, when: Callable[[], bool] = lambda: True
    ) -> None:
        """Truncate a log, with the cleaner paused, if `when` still holds once the cleaner has stopped."""
        await self._truncate(topic_partition, lambda log: log.truncate_to(offset), when)

    async def truncate_fully_and_start_at(
        self, topic_partition: TopicPartition, offset: int, *, when: Callable[[], bool] = lambda: True
    ) -> None:
        await self._truncate(topic_partition, lambda log: log.truncate_fully_and_start_at(offset), when)

    async def restart_from_remote(
        self, topic_partition: TopicPartition, state: RemoteTierState, *, when: Callable[[], bool]
    ) -> None:
        """Remove a log and continue it after what is in the remote tier."""
        await self._truncate(topic_partition, lambda log: log.restart_from_remote(state), when)

    async def _truncate(
        self,
        topic_partition: TopicPartition,
        truncate: Callable[[Log], object],
        when: Callable[[], bool],
    ) -> None:
        await self.cleaner.pause(topic_partition)
        try:
            log = self.table.current.get(topic_partition)
            if log is None or not when():
                return
            truncate(log)
            future = self.table.future.get(topic_partition)
            if future is not None and future.log_end_offset > log.log_end_offset:
                # It has copied records that are truncated now, and must not keep them when the log grows.
                truncate(future)
            directory = self.directories.of(log)
            limit = log.segments.active.base_offset
            if directory.cleaner_offsets.get(topic_partition, 0) > limit:
                directory.cleaner_offsets[topic_partition] = limit
                await self.checkpoints.write_cleaner_offsets([directory.path])
            await self.checkpoints.write_all([directory.path])
        finally:
            self.cleaner.resume(topic_partition)

    async def shutdown(self, broker_epoch: int = -1) -> None:
        """Flush and close all logs, so that the next start needs no recovery."""
        await self.cleaner.close()
        await asyncio.gather(*(self._close(item, broker_epoch) for item in self.directories.online))
        self.table.clear()

    async def _close(self, directory: LogDirectory, broker_epoch: int) -> None:
        if not directory.loaded:
            # The start was aborted before this directory was loaded: its checkpoints stay as they are.
            directory.release()
            return
        pending = iter(self.table.in_directory(directory.path))
        errors: list[KafkaError] = []

        async def work() -> None:
            for log in pending:
                try:
                    await self._pool.run(log.close)
                except KafkaError as error:
                    errors.append(error)

        await asyncio.gather(*(work() for _ in range(self._threads)))
        errors += await self.checkpoints.write_all([directory.path])
        try:
            if directory.online and not errors:
                await self._pool.run(directory.clean_shutdown.write, broker_epoch)
        except OSError as error:
            errors.append(LogDirectoryFailed(directory.path, str(error)))
        for problem in errors:
            logger.error("%s will be recovered at the next start: %s", directory.path, problem)
        directory.release()


def _longer_and_shorter(one: Log, other: Log) -> tuple[Log, Log]:
    """Order two logs of one partition, which a crash or a failed disk during a move leaves.

    The longer one had become the current log: it has everything that the other has.
    """
    if None not in (one.topic_id, other.topic_id) and one.topic_id != other.topic_id:
        raise _storage_error(
            f"{one.topic_partition} is both in {one.directory} and in {other.directory}, with different "
            "topic ids: delete the folder that is not needed and start again."
        )
    return (other, one) if other.log_end_offset > one.log_end_offset else (one, other)


def _storage_error(message: str) -> KafkaError:
    return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, message)
