"""Flushing a log, and its recovery point: the offset up to which a crash needs no recovery.

A flush syncs the leader epochs, the segments and producer snapshots, and the directory, and then moves the
recovery point. It waits for the disk and runs in a thread while the event loop continues: a truncation or
roll in the meantime lowers the recovery point (`retreat`), and the flush must not raise it again.
"""

from __future__ import annotations

import posixpath
import threading

from moldau.base.clock import Clock
from moldau.storage.directories.partition_metadata import sync_topic_id
from moldau.storage.disk.disk import storage_failure, sync_failure
from moldau.storage.log.leader_epochs import LeaderEpochs
from moldau.storage.log.segments import LogSegments
from moldau.storage.producers.snapshot import ProducerSnapshots


class LogFlusher:
    """Flushes one log. `lock` is held while files are synced; renaming the directory also takes it."""

    __slots__ = (
        "_clock",
        "_epochs",
        "_has_topic_id",
        "_last_flush_ms",
        "_retreats",
        "_segments",
        "_snapshots",
        "directory_synced",
        "lock",
        "recovery_point",
    )

    def __init__(
        self,
        clock: Clock,
        segments: LogSegments,
        epochs: LeaderEpochs,
        snapshots: ProducerSnapshots,
        *,
        recovery_point: int,
        has_topic_id: bool,
        directory_synced: bool,
    ) -> None:
        self._clock = clock
        self._segments = segments
        self._epochs = epochs
        self._snapshots = snapshots
        self.recovery_point = recovery_point
        self._has_topic_id = has_topic_id
        #: Unless set, a power cut could lose the directory, its name or `partition.metadata`.
        self.directory_synced = directory_synced
        self._last_flush_ms = clock.time_ms()
        self._retreats = 0
        self.lock = threading.Lock()

    def is_due(self, now_ms: int | None = None) -> bool:
        """Whether `flush.messages` is reached, or, with a time, `flush.ms`, or a segment was closed."""
        segments = self._segments
        unflushed = segments.end_offset - self.recovery_point
        if unflushed <= 0:
            return False
        if unflushed >= segments.config.flush_messages:
            return True
        return now_ms is not None and (
            now_ms - self._last_flush_ms >= segments.config.flush_ms
            or segments.active.base_offset > self.recovery_point
        )

    def flush(self, up_to: int | None = None) -> int:
        """Sync everything below an offset (default: the log end); return the recovery point."""
        segments = self._segments
        with self.lock:
            begin = self._clock.monotonic()
            target = segments.end_offset if up_to is None else up_to
            while target > self.recovery_point:
                generation, retreats = segments.generation, self._retreats
                syncing = False
                try:
                    self._epochs.write()
                    syncing = True
                    self._sync(target)
                except OSError as error:
                    if segments.unchanged_since(generation):
                        failure = sync_failure if syncing else storage_failure
                        raise failure(error, segments.directory) from error
                    target = min(target, segments.end_offset)
                    continue
                with segments.change_lock:
                    if retreats == self._retreats:
                        self.recovery_point = max(self.recovery_point, target)
                segments.open_files.flushes.recent.append(self._clock.monotonic() - begin)
                break
            self._last_flush_ms = self._clock.time_ms()
            return self.recovery_point

    def retreat(self, offset: int) -> None:
        """Lower the recovery point to an offset from which on something is not on disk.

        Closing a segment is such a case: its batches may have been flushed, but its indexes were not.
        """
        with self._segments.change_lock:
            self._retreats += 1
            self.recovery_point = min(self.recovery_point, offset)

    def finish(self) -> None:
        """Sync everything for a clean shutdown, when the active segment is finished. Holds `lock`."""
        self.recovery_point = min(self.recovery_point, self._segments.active.base_offset)
        self._epochs.write()
        self._sync(self._segments.end_offset + 1)
        self.recovery_point = self._segments.end_offset

    def _sync(self, target: int) -> None:
        segments = self._segments
        syncing = [item for item in segments.current.since(self.recovery_point) if item.base_offset < target]
        for segment in syncing:
            segment.flush()
        self._snapshots.sync()
        if not self.directory_synced:
            self.sync_directory_locked()
        elif syncing and syncing[-1].base_offset >= self.recovery_point:
            segments.open_files.disk.sync_dir(segments.directory)

    def sync_directory(self) -> None:
        """Make the directory, its name and `partition.metadata` survive a power cut. Blocking."""
        try:
            with self.lock:
                self.sync_directory_locked()
        except OSError as error:
            raise self._segments.failure(error) from error

    def sync_directory_locked(self) -> None:
        """`sync_directory` for a caller that holds `lock`."""
        disk, directory = self._segments.open_files.disk, self._segments.directory
        # Set first: a truncation in the meantime clears it, because its renames may not be synced.
        self.directory_synced = True
        try:
            if self._has_topic_id:
                sync_topic_id(disk, directory)
            disk.sync_dir(directory)
            disk.sync_dir(posixpath.dirname(directory))
        except OSError:
            self.directory_synced = False
            raise
