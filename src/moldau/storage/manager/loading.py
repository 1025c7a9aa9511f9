"""Opening the logs of a data directory: all of them at start, several in parallel; later one by one.

The name of a folder determines how it is treated. Partitions and future replicas are opened, with recovery
unless the node was shut down cleanly. Folders marked for deletion are queued for it. Stray replicas are left
alone with a warning. The metadata log is in the same directory but belongs to the quorum. Any other folder
stops the start with an error that names it, since data directories contain nothing else.
"""

from __future__ import annotations

import asyncio
import logging
import posixpath
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

from moldau.base.clock import Clock
from moldau.base.errors import KafkaError
from moldau.base.ids import METADATA_TOPIC, Randomness, TopicPartition, Uuid
from moldau.base.json_log import event
from moldau.base.pool import Pool
from moldau.storage.directories.directory import LogDirectory
from moldau.storage.directories.folders import FolderKind, parse_folder
from moldau.storage.disk.disk import Disk, storage_failure
from moldau.storage.disk.open_files import OpenFiles
from moldau.storage.log.config import LogConfig
from moldau.storage.log.log import Log

#: The folder of Apache Kafka's index cache for tiered storage, which is not a partition.
_REMOTE_INDEX_CACHE = "remote-log-index-cache"
_LOGS_PER_TASK = 16

logger = logging.getLogger(__name__)

ConfigOf = Callable[[str], LogConfig]


class _Folder(NamedTuple):
    path: str
    topic_partition: TopicPartition


@dataclass(slots=True)
class LoadedDirectory:
    """The contents of a directory; incomplete if `failure` is set, because the disk failed meanwhile."""

    current: list[Log] = field(default_factory=list)
    future: list[Log] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    failure: KafkaError | None = None


class LogLoader:
    """Opens logs with what all logs of a node have in common."""

    def __init__(
        self,
        disk: Disk,
        clock: Clock,
        pool: Pool,
        files: OpenFiles,
        randomness: Randomness,
        *,
        threads: int,
        producer_expiration_ms: int,
    ) -> None:
        self._disk = disk
        self._clock = clock
        self._pool = pool
        self._files = files
        self._randomness = randomness
        self._threads = max(1, threads)
        self.producer_expiration_ms = producer_expiration_ms

    async def create(
        self, path: str, topic_partition: TopicPartition, topic_id: Uuid | None, config: LogConfig
    ) -> Log:
        """Create a log; if its folder exists after all, its contents are recovered.

        After a failure a new folder is removed: the log may be created in another directory.
        """
        return await self._pool.run(self._create, path, topic_partition, topic_id, config)

    def _create(
        self, path: str, topic_partition: TopicPartition, topic_id: Uuid | None, config: LogConfig
    ) -> Log:
        is_new = not self._disk.exists(path)
        try:
            return Log.open(
                self._disk, self._clock, path, topic_partition, topic_id, config,
                producer_expiration_ms=self.producer_expiration_ms,
                files=self._files, randomness=self._randomness,
            )  # fmt: skip
        except KafkaError:
            if is_new:
                self._remove_folder(path)
            raise

    def _remove_folder(self, path: str) -> None:
        try:
            self._disk.remove_tree(path)
        except OSError as error:
            logger.warning("Cannot remove the folder %s: %s", path, error)
        self._files.forget_directory(path)

    async def load(self, directory: LogDirectory, config_of: ConfigOf) -> LoadedDirectory:
        """Open all logs in a directory whose checkpoints have been read."""
        loaded = LoadedDirectory()
        # Computing a topic's configs takes longer than opening one of its logs.
        config_of = cache(config_of)
        try:
            current, future = await self._pool.run(self._survey, directory, loaded)
        except OSError as error:
            loaded.failure = storage_failure(error, directory.path)
            return loaded
        if current and not directory.had_clean_shutdown:
            logger.info(
                "%s was not shut down cleanly: recovering %d logs",
                directory.path,
                len(current),
                extra=event("log_directory.recovering", path=directory.path),
            )
        await self._open_all(directory, current, config_of, loaded.current, loaded)
        await self._open_all(directory, future, config_of, loaded.future, loaded)
        return loaded

    def _survey(
        self, directory: LogDirectory, loaded: LoadedDirectory
    ) -> tuple[list[_Folder], list[_Folder]]:
        current: list[_Folder] = []
        future: list[_Folder] = []
        for name in self._disk.listdir(directory.path):
            path = posixpath.join(directory.path, name)
            if name == _REMOTE_INDEX_CACHE or not self._disk.is_dir(path):
                continue
            topic_partition, kind = parse_folder(name, directory.path)
            if topic_partition.topic == METADATA_TOPIC:
                continue
            if kind is FolderKind.CURRENT:
                current.append(_Folder(path, topic_partition))
            elif kind is FolderKind.FUTURE:
                future.append(_Folder(path, topic_partition))
            elif kind is FolderKind.DELETE:
                loaded.deleted.append(path)
            else:
                logger.warning("%s is a stray replica; delete the folder if it is not needed", path)
        # Only now: a start that fails before has changed nothing.
        directory.clean_shutdown.remove()
        return current, future

    async def _open_all(
        self,
        directory: LogDirectory,
        folders: list[_Folder],
        config_of: ConfigOf,
        into: list[Log],
        loaded: LoadedDirectory,
    ) -> None:
        chunks = (folders[start : start + _LOGS_PER_TASK] for start in range(0, len(folders), _LOGS_PER_TASK))

        async def work(chunks: Iterator[list[_Folder]]) -> None:
            for chunk in chunks:
                if loaded.failure is not None:
                    return
                configs = [config_of(folder.topic_partition.topic) for folder in chunk]
                try:
                    into.extend(await self._pool.run(self._open_chunk, directory, chunk, configs))
                except KafkaError as error:
                    loaded.failure = error

        await asyncio.gather(*(work(chunks) for _ in range(self._threads)))

    def _open_chunk(
        self, directory: LogDirectory, chunk: list[_Folder], configs: list[LogConfig]
    ) -> list[Log]:
        logs: list[Log] = []
        for folder, config in zip(chunk, configs, strict=True):
            log = Log.open(
                self._disk, self._clock, folder.path, folder.topic_partition, None, config,
                recovery_point=directory.recovery_points.get(folder.topic_partition, 0),
                log_start_offset=directory.log_start_offsets.get(folder.topic_partition, 0),
                clean_shutdown=directory.had_clean_shutdown,
                producer_expiration_ms=self.producer_expiration_ms,
                files=self._files, randomness=self._randomness,
            )  # fmt: skip
            log.high_watermark = directory.high_watermarks.get(folder.topic_partition, log.log_start_offset)
            logs.append(log)
        return logs
