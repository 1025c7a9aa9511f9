"""One data directory (an entry of `log.dirs`): its lock, its checkpoint files, whether it is online.

Checkpoints are written in the pool, one at a time per directory, and never to an offline directory.
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

logger = logging.getLogger(__name__)

Offsets = dict[TopicPartition, int]


class LogDirectory:
    """`cleaner_offsets` is the cleaner checkpoint as of the next write.

    `log_start_offsets` is that checkpoint as of the last write; it may contain deleted partitions. A cordoned
    directory gets no new logs while there is another (`cordoned.log.dirs`).
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
        """Create the directory if missing and lock it; `KafkaError` if another node uses it. Blocking."""
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
        """Read the checkpoints and the clean shutdown file; return its broker epoch. Blocking."""
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
            logger.warning("%s; %s", error, consequence)
            return {}

    async def write(self, name: str, collect: Callable[[], Offsets]) -> None:
        """Replace a checkpoint file, unless the directory is offline.

        `collect` is called just before the write, so that the last writer has the latest offsets.
        """
        async with self._writing:
            if self.online:
                offsets = collect()
                await self._pool.run(self._replace, name, offsets)
                if name == LOG_START_OFFSET_CHECKPOINT:
                    self.log_start_offsets = offsets

    def _replace(self, name: str, offsets: Offsets) -> None:
        """Write in a thread; the thread of a cancelled writer continues, and the next one waits for it."""
        with self._replacing:
            OffsetCheckpoint(self._disk, self.path, name).write(offsets)

    async def write_cleaner_offsets(self) -> None:
        await self.write(CLEANER_OFFSET_CHECKPOINT, self.cleaner_offsets.copy)
