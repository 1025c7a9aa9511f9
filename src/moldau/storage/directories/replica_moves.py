"""Replicas on their way from one data directory of the node to another (AlterReplicaLogDirs).

A move begins with an empty log in the target directory, in a folder marked `-future`. `advance`, called from
time to time, copies batches to it until it has caught up and is synced as far as the old one is; in that
moment, without any await between the last look and the change, it takes the place of the old log, whose
folder is removed later. A crash between the two leaves both, and the longer log wins. Until then everything
goes on with the old log, and a move can be given another target or taken back. After a restart moves go on
where they were. The cleaner keeps away from a log that is being moved: what is copied must not fall behind
what its checkpoint says. `throttle` tells when enough was copied for now; the rest comes with the next call.
"""

from __future__ import annotations

import logging
import posixpath
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Protocol

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import TopicPartition, random_uuid
from moldau.base.pool import Pool
from moldau.storage.directories.folders import future_folder
from moldau.storage.log.log import Log

if TYPE_CHECKING:
    from moldau.storage.log_manager import LogManager

_READ_BYTES = 1024 * 1024

_logger = logging.getLogger(__name__)


class MoveThrottle(Protocol):
    def record(self, size: int) -> None: ...

    def is_exceeded(self) -> bool: ...


class ReplicaMoves:
    """Works on the log manager's tables; a log in `future_logs` is a move under way."""

    def __init__(
        self, manager: LogManager, pool: Pool, on_replaced: Callable[[TopicPartition, Log], None]
    ) -> None:
        self._manager = manager
        self._pool = pool
        self._on_replaced = on_replaced
        self._keeping_cleaner_away: set[TopicPartition] = set()
        #: None: as fast as it goes.
        self.throttle: MoveThrottle | None = None

    async def begin(self, topic_partition: TopicPartition, path: str) -> None:
        """Send a replica to another directory; to the one it is in: take a move back."""
        manager = self._manager
        directory = manager.directories.usable(path)
        async with manager.alone_with(topic_partition):
            log = manager.logs.get(topic_partition)
            if log is None:
                raise KafkaError(
                    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{topic_partition} is not on this node"
                )
            future = manager.future_logs.get(topic_partition)
            if future is not None:
                if posixpath.dirname(future.directory) == directory.path:
                    return
                await self._take_back(future)
            if posixpath.dirname(log.directory) != directory.path:
                await self._start(log, directory.path)

    async def resume_all(self) -> None:
        """Keep the cleaner away from the moves that were under way when the node stopped."""
        for topic_partition in self._manager.future_logs:
            await self._keep_cleaner_away(topic_partition)

    async def advance(self) -> None:
        """Copy what is new in the logs being moved, and finish the moves that have caught up."""
        for topic_partition in list(self._manager.future_logs):
            try:
                await self._copy(topic_partition)
            except KafkaError as error:
                self._manager.storage_failed(error)

    def ended(self, topic_partition: TopicPartition) -> None:
        """Its future log has left the table, for whatever reason."""
        if topic_partition in self._keeping_cleaner_away:
            self._keeping_cleaner_away.discard(topic_partition)
            self._manager.cleaner.resume(topic_partition)

    async def _keep_cleaner_away(self, topic_partition: TopicPartition) -> None:
        if topic_partition not in self._keeping_cleaner_away:
            self._keeping_cleaner_away.add(topic_partition)
            await self._manager.cleaner.pause(topic_partition)

    async def _start(self, log: Log, target: str) -> None:
        manager, topic_partition = self._manager, log.topic_partition
        await self._keep_cleaner_away(topic_partition)
        name = future_folder(topic_partition, random_uuid(manager.randomness))
        try:
            future = await manager.loader.create(
                posixpath.join(target, name), topic_partition, log.topic_id, log.config
            )
        except KafkaError as error:
            self.ended(topic_partition)
            manager.storage_failed(error)
            raise
        manager.future_logs[topic_partition] = future
        _logger.info("Moving %s to %s", log.directory, target)

    async def _take_back(self, future: Log) -> None:
        del self._manager.future_logs[future.topic_partition]
        self.ended(future.topic_partition)
        await self._manager.discard(future)

    async def _copy(self, topic_partition: TopicPartition) -> None:
        manager, flushed = self._manager, False
        while True:
            log, future = manager.logs.get(topic_partition), manager.future_logs.get(topic_partition)
            if log is None or future is None:
                return
            _align(log, future)
            if future.log_end_offset == log.log_end_offset:
                if not flushed or future.flusher.recovery_point < log.flusher.recovery_point:
                    # What the old log has on the disk, the new one must have there too.
                    await self._pool.run(future.flusher.flush)
                    flushed = True
                    continue
                self._replace(log, future)
                await self._clear_up(log, future)
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
            if manager.future_logs.get(topic_partition) is not future or result is None or not result.parts:
                return
            if log.segments.generation != generation:
                # What was read may have been cut off meanwhile.
                continue
            for part in result.parts:
                future.append_as_follower(part)
            if self.throttle is not None:
                self.throttle.record(result.size)

    def _replace(self, log: Log, future: Log) -> None:
        """The moment of the change: from here on the other log counts."""
        manager, topic_partition = self._manager, log.topic_partition
        future.high_watermark = log.high_watermark
        target = posixpath.dirname(future.directory)
        future.rename_directory(posixpath.join(target, str(topic_partition)))
        manager.logs[topic_partition] = future
        del manager.future_logs[topic_partition]
        cleaned = manager.directories.of(log).cleaner_offsets.pop(topic_partition, None)
        if cleaned is not None:
            manager.directories.of(future).cleaner_offsets[topic_partition] = cleaned
        self.ended(topic_partition)
        self._on_replaced(topic_partition, future)
        _logger.info("%s has replaced %s", future.directory, log.directory)

    async def _clear_up(self, log: Log, future: Log) -> None:
        manager = self._manager
        paths = [manager.directories.of(each).path for each in (log, future)]
        # The old folder goes only when the new one has its name for good.
        await self._pool.run(future.flusher.sync_directory)
        await manager.discard(log)
        await manager.upkeep.write_checkpoints(paths)
        await manager.upkeep.write_cleaner_offsets(paths)


def _align(log: Log, future: Log) -> None:
    """Follow the old log where it does not just grow: its start moved up, or it was cut."""
    if future.log_end_offset < log.log_start_offset:
        future.truncate_fully_and_start_at(log.log_start_offset)
    elif future.log_end_offset > log.log_end_offset:
        future.truncate_to(log.log_end_offset)
    if future.log_start_offset < log.log_start_offset:
        future.high_watermark = log.high_watermark
        future.delete_records_before(log.log_start_offset)
