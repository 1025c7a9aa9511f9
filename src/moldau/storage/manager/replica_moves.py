"""Moving replicas from one data directory of the node to another (AlterReplicaLogDirs).

A move begins with an empty future log in the target directory, in a folder marked `-future`. `advance`,
called regularly, copies batches to it until it has caught up with the current log and is flushed as far.
Then, without an await between the last check and the change, it becomes the current log, and the folder of
the old one is deleted later. After a crash between the two, both exist, and the longer log is used. Until the
change the old log stays in use, and a move can be redirected or cancelled. After a restart moves continue.

The cleaner is paused for a log that is being moved: the copy must not fall behind the cleaner checkpoint.
"""

from __future__ import annotations

import logging
import posixpath
from collections.abc import Callable
from functools import partial
from typing import Protocol

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import Randomness, TopicPartition, random_uuid
from moldau.base.pool import Pool
from moldau.storage.cleaner.manager import LogCleaner
from moldau.storage.directories.directories import LogDirectories
from moldau.storage.directories.folders import future_folder
from moldau.storage.log.log import Log
from moldau.storage.manager.checkpoints import CheckpointWriter
from moldau.storage.manager.deletion import LogDeletion
from moldau.storage.manager.failures import DirectoryFailures
from moldau.storage.manager.loading import LogLoader
from moldau.storage.manager.table import LogTable

_READ_BYTES = 1024 * 1024

logger = logging.getLogger(__name__)


class MoveThrottle(Protocol):
    """Limits the rate of copying (`replica.alter.log.dirs.io.max.bytes.per.second`)."""

    def record(self, size: int) -> None: ...

    def is_exceeded(self) -> bool: ...


class ReplicaMoves:
    """A log in `LogTable.future` is a move in progress. Without a `throttle`, copying is not limited."""

    def __init__(
        self,
        pool: Pool,
        randomness: Randomness,
        table: LogTable,
        directories: LogDirectories,
        loader: LogLoader,
        cleaner: LogCleaner,
        checkpoints: CheckpointWriter,
        deletion: LogDeletion,
        failures: DirectoryFailures,
        on_replaced: Callable[[TopicPartition, Log], None],
    ) -> None:
        self._pool = pool
        self._randomness = randomness
        self._table = table
        self._directories = directories
        self._loader = loader
        self._cleaner = cleaner
        self._checkpoints = checkpoints
        self._deletion = deletion
        self._failures = failures
        self._on_replaced = on_replaced
        self._cleaner_paused: set[TopicPartition] = set()
        self.throttle: MoveThrottle | None = None

    async def begin(self, topic_partition: TopicPartition, path: str) -> None:
        """Move a replica to another directory; its present directory as the target cancels a move."""
        directory = self._directories.usable(path)
        async with self._table.exclusive(topic_partition):
            log = self._table.current.get(topic_partition)
            if log is None:
                raise KafkaError(
                    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{topic_partition} is not on this node"
                )
            future = self._table.future.get(topic_partition)
            if future is not None:
                if posixpath.dirname(future.directory) == directory.path:
                    return
                await self._cancel(future)
            if posixpath.dirname(log.directory) != directory.path:
                await self._start(log, directory.path)

    async def resume_all(self) -> None:
        """Continue the moves that were in progress when the node stopped."""
        for topic_partition in self._table.future:
            await self._pause_cleaner(topic_partition)

    async def advance(self) -> None:
        """Copy new batches of the logs being moved, and complete the moves that have caught up."""
        for topic_partition in list(self._table.future):
            try:
                await self._copy(topic_partition)
            except KafkaError as error:
                self._failures.report(error)

    def ended(self, topic_partition: TopicPartition) -> None:
        """Resume the cleaner, as the future log has left the table."""
        if topic_partition in self._cleaner_paused:
            self._cleaner_paused.discard(topic_partition)
            self._cleaner.resume(topic_partition)

    async def _pause_cleaner(self, topic_partition: TopicPartition) -> None:
        if topic_partition not in self._cleaner_paused:
            self._cleaner_paused.add(topic_partition)
            await self._cleaner.pause(topic_partition)

    async def _start(self, log: Log, target: str) -> None:
        topic_partition = log.topic_partition
        await self._pause_cleaner(topic_partition)
        name = future_folder(topic_partition, random_uuid(self._randomness))
        try:
            future = await self._loader.create(
                posixpath.join(target, name), topic_partition, log.topic_id, log.config
            )
        except KafkaError as error:
            self.ended(topic_partition)
            self._failures.report(error)
            raise
        self._table.future[topic_partition] = future
        logger.info("Moving %s to %s", log.directory, target)

    async def _cancel(self, future: Log) -> None:
        del self._table.future[future.topic_partition]
        self.ended(future.topic_partition)
        await self._deletion.delete(future)

    async def _copy(self, topic_partition: TopicPartition) -> None:
        table, flushed = self._table, False
        while True:
            log, future = table.current.get(topic_partition), table.future.get(topic_partition)
            if log is None or future is None:
                return
            _align(log, future)
            if future.log_end_offset == log.log_end_offset:
                if not flushed or future.flusher.recovery_point < log.flusher.recovery_point:
                    # The new log must have on disk whatever the old one has.
                    await self._pool.run(future.flusher.flush)
                    flushed = True
                    continue
                self._replace(log, future)
                await self._delete_old(log, future)
                return
            if self.throttle is not None and self.throttle.is_exceeded():
                return
            read = partial(
                log.reader.read,
                future.log_end_offset,
                _READ_BYTES,
                upper_bound=log.log_end_offset,
                blocking=True,
            )
            generation = log.segments.generation
            result = await self._pool.run(read)
            if table.future.get(topic_partition) is not future or result is None or not result.parts:
                return
            if log.segments.generation != generation:
                # The batches may have been truncated meanwhile.
                continue
            for part in result.parts:
                future.append_as_follower(part)
            if self.throttle is not None:
                self.throttle.record(result.size)

    def _replace(self, log: Log, future: Log) -> None:
        """Make the future log the current one."""
        topic_partition = log.topic_partition
        future.high_watermark = log.high_watermark
        target = posixpath.dirname(future.directory)
        future.rename_directory(posixpath.join(target, str(topic_partition)))
        self._table.current[topic_partition] = future
        del self._table.future[topic_partition]
        cleaned = self._directories.of(log).cleaner_offsets.pop(topic_partition, None)
        if cleaned is not None:
            self._directories.of(future).cleaner_offsets[topic_partition] = cleaned
        self.ended(topic_partition)
        self._on_replaced(topic_partition, future)
        logger.info("%s has replaced %s", future.directory, log.directory)

    async def _delete_old(self, log: Log, future: Log) -> None:
        paths = [self._directories.of(each).path for each in (log, future)]
        # The old folder is deleted only when the new name is on disk.
        await self._pool.run(future.flusher.sync_directory)
        await self._deletion.delete(log)
        await self._checkpoints.write_all(paths)
        await self._checkpoints.write_cleaner_offsets(paths)


def _align(log: Log, future: Log) -> None:
    """Apply changes of the old log other than appends: a higher log start offset, a truncation."""
    local_start = log.local_log_start_offset
    if future.log_end_offset < local_start:
        if log.log_start_offset < local_start:
            future.restart_from_remote(log.remote_tier_state())
        else:
            future.truncate_fully_and_start_at(local_start)
    elif future.log_end_offset > log.log_end_offset:
        future.truncate_to(log.log_end_offset)
    if future.log_start_offset < log.log_start_offset:
        future.high_watermark = log.high_watermark
        future.delete_records_before(log.log_start_offset)
