"""Writes metadata snapshots and deletes old ones (KIP-630).

A snapshot is due when `metadata.log.max.record.bytes.between.snapshots` have been committed since the last
one, or after `metadata.log.max.snapshot.interval.ms` if anything has been committed. Old snapshots and the
log before them are deleted when log and snapshots together exceed `metadata.max.retention.bytes`, or a
snapshot is older than `metadata.max.retention.ms`; the latest one is always kept.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from moldau.base.clock import Clock
from moldau.base.json_log import event
from moldau.base.pool import Pool
from moldau.metadata.features import MIN_METADATA_VERSION
from moldau.metadata.image import MetadataImage
from moldau.metadata.image_records import image_records
from moldau.quorum.committed import CommittedMetadata
from moldau.quorum.errors import UnusableMetadata
from moldau.quorum.metadata_log import MetadataLog
from moldau.quorum.settings import QuorumSettings
from moldau.quorum.snapshots import SnapshotId, encode_snapshot, list_snapshots, read_snapshot_time
from moldau.raft.voters import STATIC, VoterHistory, VoterSet
from moldau.storage.disk.disk import Disk

logger = logging.getLogger(__name__)

#: Runs a task between two inputs of Raft.
RunSerialized = Callable[[Callable[[], Awaitable[None]]], Awaitable[Any]]


class Snapshotter:
    """`uncovered_bytes` is the size of the log after the latest snapshot."""

    def __init__(
        self,
        metadata_log: MetadataLog,
        committed: CommittedMetadata,
        history: VoterHistory,
        settings: QuorumSettings,
        *,
        disk: Disk,
        clock: Clock,
        pool: Pool,
        uncovered_bytes: int,
    ) -> None:
        self._log = metadata_log
        self._committed = committed
        self._history = history
        self._settings = settings
        self._disk = disk
        self._clock = clock
        self._pool = pool
        self._uncovered_bytes = uncovered_bytes
        self._last_snapshot = clock.monotonic()
        self._lock = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None

    # Writing.

    def bytes_committed(self, size: int) -> None:
        """Count committed bytes, and start a snapshot in the background if one is due."""
        self._uncovered_bytes += size
        if self._is_due() and not self._lock.locked():
            self._task = asyncio.create_task(self._snapshot_if_due())

    def _is_due(self) -> bool:
        if self._uncovered_bytes >= self._settings.snapshot_after_bytes:
            return True
        interval_ms = self._settings.snapshot_after_ms
        elapsed_ms = (self._clock.monotonic() - self._last_snapshot) * 1000
        return self._uncovered_bytes > 0 and interval_ms > 0 and elapsed_ms >= interval_ms

    async def _snapshot_if_due(self) -> None:
        async with self._lock:
            if not self._is_due() or self._committed.in_transaction:
                return
            self._uncovered_bytes = 0
            self._last_snapshot = self._clock.monotonic()
            image, timestamp = self._committed.image, self._committed.timestamp
            dynamic = self._history.kraft_version_at(image.offset) > STATIC
            voters = self._history.voters_at(image.offset) if dynamic else None
            try:
                written = await self._pool.run(self._write, image, timestamp, voters)
            except OSError as error:
                # The log still contains every record; the next snapshot may succeed.
                logger.error("the metadata snapshot at offset %d failed: %s", image.offset, error)
            else:
                # The log may have been restarted at a later snapshot of the leader meanwhile.
                if written.end_offset >= self._log.start_offset:
                    self._log.snapshot_written(written)

    def _write(self, image: MetadataImage, last_timestamp: int, voters: VoterSet | None) -> SnapshotId:
        """Write a snapshot of the image, with the voters of a dynamic quorum. Blocking."""
        snapshot = SnapshotId(image.offset + 1, image.epoch)
        data = encode_snapshot(
            image_records(image),
            image.features.metadata_version or MIN_METADATA_VERSION,
            epoch=image.epoch,
            time_ms=self._clock.time_ms(),
            last_contained_log_timestamp=last_timestamp,
            voters=voters,
        )
        self._disk.write_atomic(f"{self._settings.folder}/{snapshot.file_name}", data)
        logger.info(
            "wrote the metadata snapshot %s (%d bytes)",
            snapshot.file_name,
            len(data),
            extra=event("metadata_snapshot.written", file=snapshot.file_name),
        )
        return snapshot

    # Deleting.

    async def maintain(self, run_serialized: RunSerialized) -> None:
        """Write a snapshot if one is due, and delete expired snapshots and the log before them."""
        await self._snapshot_if_due()
        async with self._lock:
            expired, oldest_kept = await self._pool.run(self._expired, self._log.log.segments.size)
            if expired and oldest_kept is not None:

                async def advance_log_start() -> None:
                    self._log.start_at(oldest_kept)
                    self._log.snapshots_removed(expired)
                    self._history.discard_before(oldest_kept.end_offset)

                await run_serialized(advance_log_start)
                await self._pool.run(self._delete, expired)
            await self._pool.run(self._log.log.segments.remove_deleted_files)

    def _expired(self, log_size: int) -> tuple[list[SnapshotId], SnapshotId | None]:
        """Return the expired snapshots, oldest first, and the oldest one to keep. Blocking."""
        folder = self._settings.folder
        snapshots = list_snapshots(self._disk, folder)
        sizes = [self._disk.size(f"{folder}/{each.file_name}") for each in snapshots]
        total = log_size + sum(sizes)
        for number, snapshot in enumerate(snapshots):
            is_last = number == len(snapshots) - 1
            if is_last or not (self._too_large(total) or self._too_old(f"{folder}/{snapshot.file_name}")):
                return snapshots[:number], snapshot
            total -= sizes[number]
        return [], None

    def _too_large(self, total: int) -> bool:
        return 0 <= self._settings.retention_bytes < total

    def _too_old(self, path: str) -> bool:
        if self._settings.retention_ms < 0:
            return False
        try:
            written_ms = read_snapshot_time(self._disk, path)
        except UnusableMetadata as error:
            # A damaged snapshot is not needed, because newer ones exist.
            logger.warning("%s", error, extra=event("metadata_snapshot.damaged", path=path))
            return True
        return self._clock.time_ms() - written_ms > self._settings.retention_ms

    def _delete(self, snapshots: list[SnapshotId]) -> None:
        """Delete snapshot files. Blocking."""
        for snapshot in snapshots:
            self._disk.remove(f"{self._settings.folder}/{snapshot.file_name}")
            logger.info("deleted the metadata snapshot %s", snapshot.file_name)

    async def close(self) -> None:
        """Wait for a snapshot that is being written in the background."""
        if self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)
