"""The follower's part of the metadata quorum: append, truncate, or restart the log at a leader's snapshot.

Appended records are synced before the next fetch, because its offset tells the leader what is durable here. A
snapshot is written chunk by chunk into a `.part` file, and renamed when it is complete, valid and durable.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.pool import Pool
from moldau.metadata.loader import MetadataLoader
from moldau.protocol.errors import CorruptBatch, DecodeError
from moldau.protocol.schema import Buffer
from moldau.quorum.batches import Batch, VoterChange, read_batches, voter_changes
from moldau.quorum.committed import CommittedMetadata, UncommittedRecords
from moldau.quorum.errors import UnusableMetadata
from moldau.quorum.metadata_log import MetadataLog
from moldau.quorum.recovery import load_snapshot
from moldau.quorum.settings import QuorumSettings
from moldau.quorum.snapshots import Snapshot, SnapshotId, read_snapshot
from moldau.raft.types import Append, RaftSafetyViolation, SnapshotChunk, Truncate
from moldau.storage.disk.disk import Disk, storage_failure, sync_failure

logger = logging.getLogger(__name__)

#: Larger fetch responses are decoded in the pool.
_OFFLOAD_BYTES = 16_384


class QuorumFollower:
    def __init__(
        self,
        metadata_log: MetadataLog,
        committed: CommittedMetadata,
        settings: QuorumSettings,
        *,
        disk: Disk,
        pool: Pool,
    ) -> None:
        self._log = metadata_log
        self._committed = committed
        self._settings = settings
        self._disk = disk
        self._pool = pool

    async def append(self, action: Append) -> list[VoterChange]:
        """Append and sync records of the leader; return the voter changes in them. On an error, nothing is
        appended."""
        batches = await self._read(action.records)
        start = self._log.end_offset
        try:
            # Rolling a segment appends batch by batch, and the disk may become full in between.
            appended = self._log.append_fetched(action.records, batches, action.leader_epoch)
            await self._pool.run(self._log.flush)
        except KafkaError:
            self._log.truncate(start)
            raise
        changes: list[VoterChange] = []
        for batch in appended:
            self._committed.append(UncommittedRecords.from_batch(batch))
            changes += voter_changes(batch.control, batch.header.base_offset)
        return changes

    async def _read(self, records: Buffer) -> Sequence[Batch]:
        if len(records) > _OFFLOAD_BYTES:
            return await self._pool.run(_decode, records)
        return _decode(records)

    def truncate(self, action: Truncate) -> None:
        if action.end_offset < self._committed.end_offset:
            raise RaftSafetyViolation(
                f"The leader's metadata log diverges at offset {action.end_offset}, but every record before "
                f"offset {self._committed.end_offset} is committed here."
            )
        logger.warning(
            "the metadata log diverges from the leader's; truncating %d records from offset %d",
            self._log.end_offset - action.end_offset,
            action.end_offset,
        )
        self._log.truncate(action.end_offset)
        self._committed.truncate(action.end_offset)

    async def write_snapshot_chunk(self, chunk: SnapshotChunk) -> Snapshot | None:
        """Write a chunk of the leader's snapshot. After the last one, restart the log at the snapshot and
        return it."""
        snapshot_id = SnapshotId(*chunk.snapshot)
        path = f"{self._settings.folder}/{snapshot_id.file_name}.part"
        await self._pool.run(self._write, path, chunk)
        if not chunk.is_last:
            return None
        snapshot, loader = await self._pool.run(self._finish, path, snapshot_id)
        self._log.snapshot_written(snapshot_id)
        older = self._log.restart_at(snapshot_id)
        timestamp = snapshot.last_contained_log_timestamp
        self._log.last_timestamp = max(self._log.last_timestamp, timestamp)
        self._committed.restore(loader, snapshot_id.end_offset, timestamp)
        await self._pool.run(self._remove, older)
        logger.info("restarted the metadata log at the leader's snapshot %s", snapshot_id.file_name)
        return snapshot

    def _remove(self, snapshots: Sequence[SnapshotId]) -> None:
        for each in snapshots:
            self._disk.remove(f"{self._settings.folder}/{each.file_name}")

    def _write(self, path: str, chunk: SnapshotChunk) -> None:
        try:
            if chunk.position == 0:
                self._disk.remove(path)
            file = self._disk.open(path, create=chunk.position == 0)
            try:
                file.pwrite([chunk.records], chunk.position)
                if chunk.is_last:
                    file.sync()
            finally:
                file.close()
        except OSError as error:
            raise storage_failure(error, path) from error

    def _finish(self, path: str, snapshot_id: SnapshotId) -> tuple[Snapshot, MetadataLoader]:
        try:
            snapshot = read_snapshot(self._disk, path)
            loader = load_snapshot(snapshot, snapshot_id, self._settings.folder)
        except UnusableMetadata as error:
            raise KafkaError(
                ErrorCode.CORRUPT_MESSAGE, f"the leader's snapshot is corrupt: {error}"
            ) from error
        try:
            self._disk.rename(path, path.removesuffix(".part"))
            self._disk.sync_dir(self._settings.folder)
        except OSError as error:
            raise sync_failure(error, path) from error
        return snapshot, loader


def _decode(records: Buffer) -> Sequence[Batch]:
    try:
        return list(read_batches(records))
    except (CorruptBatch, DecodeError) as error:
        raise KafkaError(
            ErrorCode.CORRUPT_MESSAGE, f"the leader's records cannot be decoded: {error}"
        ) from error
