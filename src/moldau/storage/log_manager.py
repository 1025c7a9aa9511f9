"""All logs of a node, in one or more data directories.

The manager owns the table of logs. It opens them at start and on demand (a new one in the directory that has
the fewest), renames them away and removes them later when their topic is deleted, and does what logs need
from time to time (`upkeep`: flush, retention, checkpoints, removal of deleted files, compaction). It has no
tasks or threads of its own: the node calls the coroutines at the intervals of its configuration, slow work
goes to the pool, and `shutdown` leaves everything so that the next start needs no recovery.

A disk that fails takes the partitions of its directory with it and no others: they leave the table and the
owner is told (`on_directory_failure`), whoever noticed the failure. A full disk is not a failed one.

A partition's folder is created, renamed or removed by one coroutine at a time (`alone_with`).
"""

from __future__ import annotations

import asyncio
import logging
import posixpath
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import NamedTuple

from moldau.base.clock import Clock
from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import Randomness, TopicPartition, Uuid, format_uuid, random_uuid
from moldau.base.pool import Pool
from moldau.storage.cleaner.job import CleanerRunner, CleanerSettings
from moldau.storage.cleaner.manager import LogCleaner
from moldau.storage.directories.directories import LogDirectories
from moldau.storage.directories.directory import LogDirectory
from moldau.storage.directories.folders import delete_folder, stray_folder
from moldau.storage.directories.loading import ConfigOf, LoadedDirectory, LogLoader
from moldau.storage.directories.replica_moves import ReplicaMoves
from moldau.storage.disk.disk import Disk, DiskFull, LogDirectoryFailed
from moldau.storage.disk.open_files import DEFAULT_LIMIT, OpenFiles
from moldau.storage.log.config import LogConfig
from moldau.storage.log.log import Log
from moldau.storage.log_upkeep import LogUpkeep

_CREATIONS_AT_A_TIME = 4

_logger = logging.getLogger(__name__)

IsStray = Callable[[TopicPartition, Uuid | None], bool]


@dataclass(frozen=True, slots=True)
class LogManagerSettings:
    """The broker's settings that concern all logs."""

    recovery_threads_per_data_dir: int = 2
    producer_id_expiration_ms: int = 86_400_000
    delete_delay_ms: int = 60_000
    open_files: int = DEFAULT_LIMIT


@dataclass(frozen=True, slots=True)
class DirectoryFailure:
    """A data directory is gone, and with it these partitions. `last`: no other is left."""

    path: str
    reason: str
    partitions: tuple[TopicPartition, ...]
    last: bool


class NewLog(NamedTuple):
    """A log that should exist; `directory_id` names the directory when it is not ours to choose."""

    topic_partition: TopicPartition
    topic_id: Uuid
    config: LogConfig
    directory_id: Uuid | None = None


class LogManager:
    """`logs` are the replicas that count; `future_logs` those on their way to another directory."""

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
        self.settings = settings or LogManagerSettings()
        self.logs: dict[TopicPartition, Log] = {}
        self.future_logs: dict[TopicPartition, Log] = {}
        self.previous_broker_epoch: int | None = None
        self.directories = LogDirectories(disk, pool, directories)
        self._disk = disk
        self._pool = pool
        self.randomness = randomness
        self._on_directory_failure = on_directory_failure
        self._files = OpenFiles(disk, self.settings.open_files)
        self.loader = LogLoader(
            disk, clock, pool, self._files, randomness,
            threads=self.settings.recovery_threads_per_data_dir,
            producer_expiration_ms=self.settings.producer_id_expiration_ms,
        )  # fmt: skip
        self.cleaner = LogCleaner(
            disk, clock, pool, runner, cleaner_settings or CleanerSettings(),
            self.logs, self.directories, self.storage_failed,
        )  # fmt: skip
        self.upkeep = LogUpkeep(
            disk,
            clock,
            pool,
            self.logs,
            self.future_logs,
            self.directories,
            self.cleaner,
            self.storage_failed,
        )
        self.moves = ReplicaMoves(self, pool, on_log_replaced)
        self._changing: dict[TopicPartition, asyncio.Event] = {}
        #: Second folders of one partition, found while loading.
        self._doubled: list[Log] = []
        self._counts: Counter[str] = Counter()
        self._arriving: Counter[str] = Counter()
        self._claimed = False

    def in_directory(self, path: str) -> list[Log]:
        return [log for log in self._all_logs() if posixpath.dirname(log.directory) == path]

    def get(self, topic_partition: TopicPartition) -> Log | None:
        return self.logs.get(topic_partition)

    async def claim(self) -> None:
        """Lock the directories for this node and read their checkpoints; once, before anything is written."""
        if self._claimed:
            return
        self.previous_broker_epoch, failures = await self.directories.claim()
        self._claimed = True
        for failure in failures:
            self.storage_failed(failure)

    async def load(
        self, config_of: ConfigOf, is_stray: IsStray = lambda topic_partition, topic_id: False
    ) -> None:
        """Open all logs in the directories; recover those that were not shut down cleanly.

        A directory whose disk fails is left out. `KafkaError` when another node uses one, when none is left,
        or when a folder cannot be what its name says.
        """
        await self.claim()
        try:
            online = self.directories.online
            results = await asyncio.gather(*(self.loader.load(item, config_of) for item in online))
            for directory, loaded in zip(online, results, strict=True):
                self._adopt(directory, loaded)
            if not self.directories.online:
                reasons = "; ".join(f"{item.path}: {item.failure}" for item in self.directories)
                raise _storage_error(f"None of the log directories can be used: {reasons}")
        except KafkaError:
            self.directories.release()
            raise
        for log in self._doubled:
            await self._rename(log, stray_folder)
            _logger.warning("A move was interrupted: the shorter replica is kept aside as %s", log.directory)
        self._doubled.clear()
        for log in self._all_logs():
            if is_stray(log.topic_partition, log.topic_id):
                await self._set_aside(log)
        await self.moves.resume_all()
        _logger.info("Loaded %d logs", len(self.logs))

    async def _set_aside(self, log: Log) -> None:
        table = self.logs if self.logs.get(log.topic_partition) is log else self.future_logs
        del table[log.topic_partition]
        await self._rename(log, stray_folder)
        _logger.warning(
            "%s is not known to the metadata: kept aside as %s", log.topic_partition, log.directory
        )

    def _adopt(self, directory: LogDirectory, loaded: LoadedDirectory) -> None:
        """Take what was found in a directory into the tables."""
        if loaded.failure is not None:
            self._take_offline(directory, str(loaded.failure))
            return
        directory.loaded = True
        found = {log.topic_partition for log in (*loaded.current, *loaded.future)}
        directory.cleaner_offsets = {
            topic_partition: offset
            for topic_partition, offset in directory.cleaner_offsets.items()
            if topic_partition in found
        }
        for path in loaded.deleted:
            self.upkeep.remove_later(path, self.settings.delete_delay_ms)
        for table, logs in ((self.logs, loaded.current), (self.future_logs, loaded.future)):
            for log in logs:
                other = table.setdefault(log.topic_partition, log)
                if other is not log:
                    self._doubled.append(self._shorter_of(table, other, log))

    def _shorter_of(self, table: dict[TopicPartition, Log], one: Log, other: Log) -> Log:
        """A crash or a failing disk in the middle of a move leaves two folders of one partition.

        The one that had taken over has everything that the other has, and perhaps more.
        """
        if None not in (one.topic_id, other.topic_id) and one.topic_id != other.topic_id:
            raise _storage_error(
                f"{one.topic_partition} lies both in {one.directory} and in {other.directory}, under two "
                "topic ids: delete the folder that is not wanted and start again."
            )
        longer, shorter = (other, one) if other.log_end_offset > one.log_end_offset else (one, other)
        table[one.topic_partition] = longer
        return shorter

    async def get_or_create(
        self,
        topic_partition: TopicPartition,
        topic_id: Uuid,
        config: LogConfig,
        *,
        directory_id: Uuid | None = None,
        is_new: bool = True,
    ) -> Log:
        """The log of a partition; a new one goes to the directory given or the one with the fewest logs.

        A log that is not new and not here may lie in a directory that failed: then nothing is created.
        """
        async with self.alone_with(topic_partition):
            log = self.logs.get(topic_partition)
            if log is None:
                if self.directories.offline and not is_new:
                    raise _storage_error(f"{topic_partition} may lie in a log directory that is offline")
                log = await self._create(topic_partition, topic_id, config, directory_id)
                self.logs[topic_partition] = log
            elif log.topic_id is not None and log.topic_id != topic_id:
                raise KafkaError(
                    ErrorCode.INCONSISTENT_TOPIC_ID,
                    f"The log of {topic_partition} belongs to topic id {format_uuid(log.topic_id)}, "
                    f"not {format_uuid(topic_id)}",
                )
            return log

    async def create_all(self, wanted: Iterable[NewLog]) -> dict[TopicPartition, Log | KafkaError]:
        """`get_or_create` for many at once."""
        results: dict[TopicPartition, Log | KafkaError] = {}
        pending = iter(wanted)

        async def work() -> None:
            for topic_partition, topic_id, config, directory_id in pending:
                try:
                    results[topic_partition] = await self.get_or_create(
                        topic_partition, topic_id, config, directory_id=directory_id
                    )
                except KafkaError as error:
                    results[topic_partition] = error

        await asyncio.gather(*(work() for _ in range(_CREATIONS_AT_A_TIME)))
        return results

    async def _create(
        self, topic_partition: TopicPartition, topic_id: Uuid, config: LogConfig, directory_id: Uuid | None
    ) -> Log:
        error: KafkaError = _storage_error("No log directory is available")
        for directory in self.directories.candidates(directory_id, self._count_logs()):
            self._arriving[directory.path] += 1
            try:
                await self._forget_start(directory, topic_partition)
                path = posixpath.join(directory.path, str(topic_partition))
                log = await self.loader.create(path, topic_partition, topic_id, config)
                self._counts[directory.path] += 1
                return log
            except (DiskFull, LogDirectoryFailed) as failure:
                self.storage_failed(failure)
                error = failure
            finally:
                self._arriving[directory.path] -= 1
        raise error

    async def _forget_start(self, directory: LogDirectory, topic_partition: TopicPartition) -> None:
        """A deleted partition of this name may have left its log start; after a crash it would be ours."""
        if topic_partition in directory.log_start_offsets:
            errors = await self.upkeep.write_checkpoints([directory.path])
            if errors:
                raise errors[0]

    def _count_logs(self) -> Counter[str]:
        """Logs in each directory, those being created included; counted anew after other changes."""
        if self._counts.total() != len(self.logs) + len(self.future_logs):
            self._counts = Counter(posixpath.dirname(log.directory) for log in self._all_logs())
        return self._counts + self._arriving

    async def delete(self, *topic_partitions: TopicPartition) -> None:
        """Rename the folders of partitions away at once, to be removed after the delay."""
        touched: dict[str, None] = {}
        for topic_partition in topic_partitions:
            async with self.alone_with(topic_partition):
                await self.cleaner.pause(topic_partition)
                found = [table.pop(topic_partition, None) for table in (self.logs, self.future_logs)]
                self.moves.ended(topic_partition)
                self.cleaner.resume(topic_partition)
                for log in found:
                    if log is not None:
                        directory = self.directories.of(log)
                        directory.cleaner_offsets.pop(topic_partition, None)
                        touched[directory.path] = None
                        await self.discard(log)
        await self.upkeep.write_checkpoints(touched)
        await self.upkeep.write_cleaner_offsets(touched)

    async def discard(self, log: Log) -> None:
        """A log that is in no table any more: its folder is renamed for deletion."""
        await self._rename(log, delete_folder)
        self.upkeep.remove_later(log.directory, self.settings.delete_delay_ms)

    async def _rename(self, log: Log, name: Callable[[TopicPartition, Uuid], str]) -> None:
        folder = name(log.topic_partition, random_uuid(self.randomness))
        path = posixpath.join(posixpath.dirname(log.directory), folder)
        try:
            await self._pool.run(log.rename_directory, path)
        except KafkaError as error:
            self.storage_failed(error)

    def update_config(self, topic_partition: TopicPartition, config: LogConfig) -> None:
        for table in (self.logs, self.future_logs):
            log = table.get(topic_partition)
            if log is not None:
                log.update_config(config)
        if not config.compact:
            self.cleaner.abort(topic_partition)

    async def move(self, topic_partition: TopicPartition, path: str) -> None:
        """Begin to move a replica to another data directory; `moves.advance` does the rest."""
        await self.moves.begin(topic_partition, path)

    async def flush_if_due(self, log: Log) -> None:
        """Bring to disk what `flush.messages` does not allow to wait any longer."""
        if log.flusher.is_due():
            await self._pool.run(log.flusher.flush)

    async def truncate_to(
        self, topic_partition: TopicPartition, offset: int, *, when: Callable[[], bool] = lambda: True
    ) -> None:
        """Cut a log, keeping the cleaner away from what it is about to lose; `when` it comes to it."""
        await self._truncate(topic_partition, lambda log: log.truncate_to(offset), when)

    async def truncate_fully_and_start_at(
        self, topic_partition: TopicPartition, offset: int, *, when: Callable[[], bool] = lambda: True
    ) -> None:
        await self._truncate(topic_partition, lambda log: log.truncate_fully_and_start_at(offset), when)

    async def _truncate(
        self,
        topic_partition: TopicPartition,
        truncate: Callable[[Log], object],
        when: Callable[[], bool],
    ) -> None:
        await self.cleaner.pause(topic_partition)
        try:
            log = self.logs.get(topic_partition)
            if log is None or not when():
                return
            truncate(log)
            future = self.future_logs.get(topic_partition)
            if future is not None and future.log_end_offset > log.log_end_offset:
                # It has copied what is gone now, and must not keep it when the log grows again.
                truncate(future)
            directory = self.directories.of(log)
            limit = log.segments.active.base_offset
            if directory.cleaner_offsets.get(topic_partition, 0) > limit:
                directory.cleaner_offsets[topic_partition] = limit
                await self.upkeep.write_cleaner_offsets([directory.path])
            await self.upkeep.write_checkpoints([directory.path])
        finally:
            self.cleaner.resume(topic_partition)

    def storage_failed(self, error: KafkaError) -> None:
        """Whoever meets a `LogDirectoryFailed` reports it here; other errors are only logged."""
        if isinstance(error, LogDirectoryFailed):
            directory = self.directories.around(error.path)
            if directory is not None:
                self._take_offline(directory, str(error))
        else:
            _logger.error("%s", error)

    def _take_offline(self, directory: LogDirectory, reason: str) -> None:
        if directory.offline:
            return
        directory.online, directory.failure = False, reason
        lost: list[TopicPartition] = []
        for table in (self.logs, self.future_logs):
            for log in [log for log in table.values() if posixpath.dirname(log.directory) == directory.path]:
                del table[log.topic_partition]
                self.cleaner.abort(log.topic_partition)
                if table is self.logs:
                    lost.append(log.topic_partition)
                else:
                    self.moves.ended(log.topic_partition)
        self._files.forget_directory(directory.path)
        directory.release()
        _logger.error(
            "Log directory %s has failed, %d partitions are offline: %s", directory.path, len(lost), reason
        )
        self._on_directory_failure(
            DirectoryFailure(directory.path, reason, tuple(lost), not self.directories.online)
        )

    async def shutdown(self, broker_epoch: int = -1) -> None:
        """Sync and close everything, so that the next start finds nothing to recover."""
        await self.cleaner.close()
        await asyncio.gather(*(self._close(item, broker_epoch) for item in self.directories.online))
        self.logs.clear()
        self.future_logs.clear()

    async def _close(self, directory: LogDirectory, broker_epoch: int) -> None:
        if not directory.loaded:
            # A start that was given up before: the checkpoints know more than we do.
            directory.release()
            return
        pending = iter(self.in_directory(directory.path))
        errors: list[KafkaError] = []

        async def work() -> None:
            for log in pending:
                try:
                    await self._pool.run(log.close)
                except KafkaError as error:
                    errors.append(error)

        await asyncio.gather(*(work() for _ in range(max(1, self.settings.recovery_threads_per_data_dir))))
        errors += await self.upkeep.write_checkpoints([directory.path])
        try:
            if directory.online and not errors:
                await self._pool.run(directory.clean_shutdown.write, broker_epoch)
        except OSError as error:
            errors.append(LogDirectoryFailed(directory.path, str(error)))
        for problem in errors:
            _logger.error("%s will be recovered at the next start: %s", directory.path, problem)
        directory.release()

    def _all_logs(self) -> list[Log]:
        return [*self.logs.values(), *self.future_logs.values()]

    @asynccontextmanager
    async def alone_with(self, topic_partition: TopicPartition) -> AsyncIterator[None]:
        while topic_partition in self._changing:
            await self._changing[topic_partition].wait()
        self._changing[topic_partition] = asyncio.Event()
        try:
            yield
        finally:
            self._changing.pop(topic_partition).set()


def _storage_error(message: str) -> KafkaError:
    return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, message)
