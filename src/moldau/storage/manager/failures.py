"""Failed data directories: the partitions of a failed disk leave the table of logs, and no others.

A full disk is not a failed one: such errors are only logged.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from moldau.base.errors import KafkaError
from moldau.base.ids import TopicPartition
from moldau.base.json_log import event
from moldau.storage.directories.directories import LogDirectories
from moldau.storage.directories.directory import LogDirectory
from moldau.storage.disk.disk import LogDirectoryFailed
from moldau.storage.disk.open_files import OpenFiles
from moldau.storage.log.log import Log
from moldau.storage.manager.table import LogTable

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class DirectoryFailure:
    """A failed data directory and its partitions. `last`: no other directory is online."""

    path: str
    reason: str
    partitions: tuple[TopicPartition, ...]
    last: bool


class DirectoryFailures:
    """Takes directories offline. `on_lost` is called for each log, `on_failure` once per directory."""

    def __init__(
        self,
        table: LogTable,
        directories: LogDirectories,
        open_files: OpenFiles,
        *,
        on_lost: Callable[[Log], None],
        on_failure: Callable[[DirectoryFailure], None],
    ) -> None:
        self._table = table
        self._directories = directories
        self._open_files = open_files
        self._on_lost = on_lost
        self._on_failure = on_failure

    def report(self, error: KafkaError) -> None:
        """Take the directory of a `LogDirectoryFailed` offline; log other errors."""
        if isinstance(error, LogDirectoryFailed):
            directory = self._directories.around(error.path)
            if directory is not None:
                self.take_offline(directory, str(error))
        else:
            logger.error("%s", error, extra=event("storage.failed"))

    def take_offline(self, directory: LogDirectory, reason: str) -> None:
        if directory.offline:
            return
        directory.online, directory.failure = False, reason
        lost: list[TopicPartition] = []
        for log in self._table.in_directory(directory.path):
            if self._table.current.get(log.topic_partition) is log:
                lost.append(log.topic_partition)
            self._on_lost(log)
            self._table.remove(log)
        self._open_files.forget_directory(directory.path)
        directory.release()
        logger.error(
            "Log directory %s has failed, %d partitions are offline: %s",
            directory.path,
            len(lost),
            reason,
            extra=event("log_directory.failed", path=directory.path, partitions=len(lost)),
        )
        self._on_failure(DirectoryFailure(directory.path, reason, tuple(lost), not self._directories.online))
