"""The data directories of a node: locking them at start, and the candidates for a new log."""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Collection, Iterator, Mapping

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import Uuid
from moldau.base.pool import Pool
from moldau.storage.directories.directory import LogDirectory
from moldau.storage.disk.disk import Disk, LogDirectoryFailed
from moldau.storage.log.log import Log


class LogDirectories:
    """The directories in the order of `log.dirs`, with the ids from their `meta.properties`."""

    def __init__(self, disk: Disk, pool: Pool, paths: Mapping[str, Uuid | None]) -> None:
        self._disk = disk
        self._pool = pool
        self._directories = {path: LogDirectory(disk, pool, path, id_) for path, id_ in paths.items()}

    def __iter__(self) -> Iterator[LogDirectory]:
        return iter(self._directories.values())

    def __getitem__(self, path: str) -> LogDirectory:
        return self._directories[path]

    @property
    def paths(self) -> list[str]:
        return list(self._directories)

    @property
    def online(self) -> list[LogDirectory]:
        return [directory for directory in self if directory.online]

    @property
    def offline(self) -> list[LogDirectory]:
        return [directory for directory in self if directory.offline]

    def usable(self, path: str) -> LogDirectory:
        """Return the directory at a path from a request; `KafkaError` if it is unknown or offline."""
        directory = self._directories.get(path)
        if directory is None:
            raise KafkaError(ErrorCode.LOG_DIR_NOT_FOUND, f"{path} is not one of the node's log.dirs")
        if directory.offline:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"Log directory {path} is offline")
        return directory

    def of(self, log: Log) -> LogDirectory:
        return self._directories[posixpath.dirname(log.directory)]

    def around(self, path: str) -> LogDirectory | None:
        """The directory that contains a path."""
        for directory in self:
            if path == directory.path or path.startswith(directory.path + "/"):
                return directory
        return None

    def candidates(self, directory_id: Uuid | None, counts: Counter[str]) -> list[LogDirectory]:
        """The directories for a new log, best first: the requested one, or those with the fewest logs."""
        online = self.online
        for directory in online:
            if directory_id is not None and directory.id == directory_id:
                return [directory]
        return sorted(online, key=lambda directory: (directory.cordoned, counts[directory.path]))

    def cordon(self, paths: Collection[str]) -> None:
        """Set which directories get no new logs (`cordoned.log.dirs`)."""
        for directory in self:
            directory.cordoned = directory.path in paths

    async def claim(self) -> tuple[int | None, list[LogDirectoryFailed]]:
        """Lock all directories and read their checkpoints.

        Return the broker epoch of the last clean shutdown, if it is the same in all of them, and the failures
        of disks. Raises `KafkaError` if another node uses a directory, or one is named twice.
        """
        real_paths = [await self._pool.run(self._disk.realpath, path) for path in self._directories]
        if len(set(real_paths)) < len(real_paths):
            raise KafkaError(
                ErrorCode.KAFKA_STORAGE_ERROR,
                f"log.dirs names a directory twice: {', '.join(self._directories)}",
            )
        failures: dict[str, LogDirectoryFailed] = {}
        for directory in self:
            try:
                await self._pool.run(directory.claim)
            except OSError as error:
                failures[directory.path] = LogDirectoryFailed(directory.path, str(error))
            except KafkaError:
                self.release()
                raise
        epochs: set[int | None] = {None} if failures else set()
        for directory in self:
            if directory.path not in failures:
                try:
                    epochs.add(await self._pool.run(directory.read_state))
                except OSError as error:
                    failures[directory.path] = LogDirectoryFailed(directory.path, str(error))
        return epochs.pop() if len(epochs) == 1 else None, list(failures.values())

    def release(self) -> None:
        """Unlock all directories."""
        for directory in self:
            directory.release()
