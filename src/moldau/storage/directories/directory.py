"""One data directory (an entry of `log.dirs`): its lock, its checkpoint files, whether its disk still works.

Checkpoints are written in the pool, one at a time in each directory, and never to a directory that has
failed.
"""

from __future__ import annotations

import asyncio
import logging
import posixpath
import threading
from collections.abc import Callable

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import TopicPartition, Uuid
from moldau.base.pool import Pool
from moldau.storage.directories.checkpoints import (
    CLEANER_OFFSET_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
    REPLICATION_OFFSET_CHECKPOINT,
    CheckpointError,
    CleanShutdownFile,
    OffsetCheckpoint,
)
from moldau.storage.disk.disk import Disk, Lock, make_durable_dirs

LOCK_FILE = ".lock"

_logger = logging.getLogger(__name__)

Offsets = dict[TopicPartition, int]


class LogDirectory:
    """`cleaner_offsets` is what the cleaner's checkpoint says or will say at the next save.

    `log_start_offsets` is what that checkpoint says, perhaps of partitions that are gone.

    A cordoned directory works, but gets no new logs while there is another (`cordoned.log.dirs`).
    """

    def __init__(self, disk: Disk, pool: Pool, path: str, directory_id: Uuid | None = None) -> None:
        self.path = path
        self.id = directory_id
        self.online = True
        self.failure: str | None = None
        self.cordoned = False
        self.had_clean_shutdown = False
        self.loaded = False
        self.recovery_points: Offsets = {}
        self.log_start_offsets: Offsets = {}
        self.high_watermarks: Offsets = {}
        self.cleaner_offsets: Offsets = {}
        self.clean_shutdown = CleanShutdownFile(disk, path)
        self._disk = disk
        self._pool = pool
        self._lock: Lock | None = None
        self._writing = asyncio.Lock()
        self._replacing = threading.Lock()

    @property
    def offline(self) -> bool:
        return not self.online

    def claim(self) -> None:
        """Create the directory if need be and lock it; `KafkaError` when another node has it. Blocking."""
        make_durable_dirs(self._disk, self.path)
        self._disk.listdir(self.path)
        try:
            self._lock = self._disk.lock(posixpath.join(self.path, LOCK_FILE))
        except BlockingIOError as error:
            raise KafkaError(
                ErrorCode.KAFKA_STORAGE_ERROR,
                f"Failed to acquire lock on file {LOCK_FILE} in {self.path}. Another node is using this "
                "directory: stop it, or give this one a log.dirs of its own.",
            ) from error

    def release(self) -> None:
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def read_state(self) -> int | None:
        """Read the checkpoints and the mark of a clean shutdown; the broker epoch it holds. Blocking."""
        self.recovery_points = self._read(RECOVERY_POINT_CHECKPOINT, "recovering everything")
        self.log_start_offsets = self._read(
            LOG_START_OFFSET_CHECKPOINT, "logs begin with their first segment"
        )
        self.high_watermarks = self._read(
            REPLICATION_OFFSET_CHECKPOINT, "high watermarks begin at the log start"
        )
        self.cleaner_offsets = self._read(CLEANER_OFFSET_CHECKPOINT, "compacting from the log start")
        self.had_clean_shutdown = self.clean_shutdown.exists()
        return self.clean_shutdown.read_broker_epoch()

    def _read(self, name: str, consequence: str) -> Offsets:
        try:
            return OffsetCheckpoint(self._disk, self.path, name).read()
        except CheckpointError as error:
            _logger.warning("%s; %s", error, consequence)
            return {}

    async def write(self, name: str, collect: Callable[[], Offsets]) -> None:
        """Replace a checkpoint file; nothing happens in a directory that has failed.

        `collect` is asked when it is this one's turn, so that the last one to write knows best.
        """
        async with self._writing:
            if self.online:
                offsets = collect()
                await self._pool.run(self._replace, name, offsets)
                if name == LOG_START_OFFSET_CHECKPOINT:
                    self.log_start_offsets = offsets

    def _replace(self, name: str, offsets: Offsets) -> None:
        """The thread of a writer that was cancelled goes on; the next one waits for its end."""
        with self._replacing:
            OffsetCheckpoint(self._disk, self.path, name).write(offsets)

    async def write_cleaner_offsets(self) -> None:
        await self.write(CLEANER_OFFSET_CHECKPOINT, self.cleaner_offsets.copy)
