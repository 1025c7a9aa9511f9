"""Creating logs, and the choice of a data directory for each: the one with the fewest logs."""

from __future__ import annotations

import asyncio
import posixpath
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import TopicPartition, Uuid, format_uuid
from moldau.storage.directories.directories import LogDirectories
from moldau.storage.directories.directory import LogDirectory
from moldau.storage.disk.disk import DiskFull, LogDirectoryFailed
from moldau.storage.log.config import LogConfig
from moldau.storage.log.log import Log
from moldau.storage.manager.checkpoints import CheckpointWriter
from moldau.storage.manager.failures import DirectoryFailures
from moldau.storage.manager.loading import LogLoader
from moldau.storage.manager.table import LogTable

_CONCURRENT_CREATIONS = 4


class NewLog(NamedTuple):
    """A log to create; `directory_id` names the directory if the caller chooses it."""

    topic_partition: TopicPartition
    topic_id: Uuid
    config: LogConfig
    directory_id: Uuid | None = None


class LogCreator:
    def __init__(
        self,
        table: LogTable,
        directories: LogDirectories,
        loader: LogLoader,
        checkpoints: CheckpointWriter,
        failures: DirectoryFailures,
    ) -> None:
        self._table = table
        self._directories = directories
        self._loader = loader
        self._checkpoints = checkpoints
        self._failures = failures
        self._counts: Counter[str] = Counter()
        self._being_created: Counter[str] = Counter()

    async def get_or_create(
        self,
        topic_partition: TopicPartition,
        topic_id: Uuid,
        config: LogConfig,
        *,
        directory_id: Uuid | None = None,
        is_new: bool = True,
    ) -> Log:
        """Return the log of a partition; create it in the directory given or the one with the fewest logs.

        A log that exists but is not in the table may be in a failed directory: then none is created.
        """
        async with self._table.exclusive(topic_partition):
            log = self._table.current.get(topic_partition)
            if log is None:
                if self._directories.offline and not is_new:
                    raise _storage_error(f"{topic_partition} may be in a log directory that is offline")
                log = await self._create(topic_partition, topic_id, config, directory_id)
                self._table.current[topic_partition] = log
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

        await asyncio.gather(*(work() for _ in range(_CONCURRENT_CREATIONS)))
        return results

    async def _create(
        self, topic_partition: TopicPartition, topic_id: Uuid, config: LogConfig, directory_id: Uuid | None
    ) -> Log:
        error: KafkaError = _storage_error("No log directory is available")
        for directory in self._directories.candidates(directory_id, self._count_logs()):
            self._being_created[directory.path] += 1
            try:
                await self._forget_log_start(directory, topic_partition)
                path = posixpath.join(directory.path, str(topic_partition))
                log = await self._loader.create(path, topic_partition, topic_id, config)
                self._counts[directory.path] += 1
                return log
            except (DiskFull, LogDirectoryFailed) as failure:
                self._failures.report(failure)
                error = failure
            finally:
                self._being_created[directory.path] -= 1
        raise error

    async def _forget_log_start(self, directory: LogDirectory, topic_partition: TopicPartition) -> None:
        """Remove the checkpointed log start of a deleted partition of this name: a crash would apply it."""
        if topic_partition in directory.log_start_offsets:
            errors = await self._checkpoints.write_all([directory.path])
            if errors:
                raise errors[0]

    def _count_logs(self) -> Counter[str]:
        """Logs in each directory, including those being created; recounted after other changes."""
        table = self._table
        if self._counts.total() != len(table.current) + len(table.future):
            self._counts = Counter(posixpath.dirname(log.directory) for log in table.all())
        return self._counts + self._being_created


def _storage_error(message: str) -> KafkaError:
    return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, message)
