"""When snapshots are written, and when old ones and the log before them go.

A snapshot is due when enough has been written since the last one, or enough time has passed and anything
was. Old ones go when log and snapshots together are too large, or a snapshot is too old; the last one
always stays.
"""

from __future__ import annotations

import logging

from moldau.base.clock import Clock
from moldau.metadata.features import MIN_METADATA_VERSION
from moldau.metadata.image import MetadataImage
from moldau.metadata.image_records import image_records
from moldau.quorum.errors import UnusableMetadata
from moldau.quorum.settings import QuorumSettings
from moldau.quorum.snapshots import SnapshotId, encode_snapshot, list_snapshots, read_snapshot_time
from moldau.raft.voters import VoterSet
from moldau.storage.disk.disk import Disk

log = logging.getLogger(__name__)


class Snapshotter:
    def __init__(self, disk: Disk, clock: Clock, settings: QuorumSettings, new_bytes: int) -> None:
        self._disk = disk
        self._clock = clock
        self._settings = settings
        self._new_bytes = new_bytes
        self._last = clock.monotonic()

    def wrote(self, size: int) -> None:
        """So many bytes were committed."""
        self._new_bytes += size

    def is_due(self) -> bool:
        if self._new_bytes >= self._settings.snapshot_after_bytes:
            return True
        interval_ms = self._settings.snapshot_after_ms
        waited_ms = (self._clock.monotonic() - self._last) * 1000
        return self._new_bytes > 0 and interval_ms > 0 and waited_ms >= interval_ms

    def begin(self) -> None:
        """What is written from now on counts for the next one."""
        self._new_bytes = 0
        self._last = self._clock.monotonic()

    def write(self, image: MetadataImage, last_timestamp: int, voters: VoterSet | None) -> SnapshotId:
        """Write a snapshot of the image. Blocking; `voters` are those of a dynamic quorum."""
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
        log.info("wrote the metadata snapshot %s (%d bytes)", snapshot.file_name, len(data))
        return snapshot

    def expired(self, log_size: int) -> tuple[list[SnapshotId], SnapshotId | None]:
        """Snapshots that may go, oldest first, and the oldest that stays. Blocking."""
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
            # Newer ones exist, so nothing depends on it.
            log.warning("%s", error)
            return True
        return self._clock.time_ms() - written_ms > self._settings.retention_ms

    def remove(self, snapshots: list[SnapshotId]) -> None:
        """Blocking."""
        for snapshot in snapshots:
            self._disk.remove(f"{self._settings.folder}/{snapshot.file_name}")
            log.info("removed the metadata snapshot %s", snapshot.file_name)
