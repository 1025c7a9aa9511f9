"""What a follower does with the leader's answers: append, cut, or begin anew from the leader's snapshot.

What was appended is synced before the next fetch, because that fetch tells the leader what is safe here. A
snapshot comes in pieces into a `.part` file; it counts when it is whole, good and durable under its name.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.pool import Pool
from moldau.metadata.loader import MetadataLoader
from moldau.protocol.errors import CorruptBatch, DecodeError
from moldau.protocol.schema import Buffer
from moldau.quorum.batches import Batch, read_batches
from moldau.quorum.committed import CommittedMetadata, Waiting
from moldau.quorum.errors import UnusableMetadata
from moldau.quorum.loading import VoterChange, restored, voter_changes
from moldau.quorum.metadata_log import MetadataLog
from moldau.quorum.settings import QuorumSettings
from moldau.quorum.snapshots import Snapshot, SnapshotId, read_snapshot
from moldau.raft.errors import QuorumBroken
from moldau.raft.types import Append, SnapshotChunk, Truncate
from moldau.storage.disk.disk import Disk, storage_failure, sync_failure

log = logging.getLogger(__name__)

#: Reading more than this is left to the pool.
_OFFLOAD_BYTES = 16_384


class Following:
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

    async def append(self, work: Append) -> list[VoterChange]:
        """Take the leader's records; gives what they say of the voters. An error: nothing was taken."""
        batches = await self._read(work.records)
        start = self._log.end_offset
        try:
            # A new segment is begun batch by batch, and the room may end in between.
            taken = self._log.append_fetched(work.records, batches, work.leader_epoch)
            await self._pool.run(self._log.flush)
        except KafkaError:
            self._log.cut(start)
            raise
        changes: list[VoterChange] = []
        for batch in taken:
            self._committed.appended(Waiting.of(batch))
            changes += voter_changes(batch.control, batch.header.base_offset)
        return changes

    async def _read(self, records: Buffer) -> Sequence[Batch]:
        if len(records) > _OFFLOAD_BYTES:
            return await self._pool.run(_read, records)
        return _read(records)

    def truncate(self, work: Truncate) -> None:
        if work.end_offset < self._committed.position:
            raise QuorumBroken(
                f"The leader's metadata log ends at {work.end_offset} where this node's differs from it, but "
                f"everything before {self._committed.position} was committed."
            )
        log.warning(
            "the metadata log differs from the leader's: %d records from offset %d on are cut off",
            self._log.end_offset - work.end_offset,
            work.end_offset,
        )
        self._log.cut(work.end_offset)
        self._committed.cut(work.end_offset)

    async def store(self, chunk: SnapshotChunk) -> Snapshot | None:
        """Write a piece of the leader's snapshot; after the last one the log begins there."""
        snapshot_id = SnapshotId(*chunk.snapshot)
        path = f"{self._settings.folder}/{snapshot_id.file_name}.part"
        await self._pool.run(self._write, path, chunk)
        if not chunk.is_last:
            return None
        snapshot, loader = await self._pool.run(self._finish, path, snapshot_id)
        self._log.snapshot_written(snapshot_id)
        older = self._log.begin_at(snapshot_id)
        timestamp = snapshot.last_contained_log_timestamp
        self._log.last_timestamp = max(self._log.last_timestamp, timestamp)
        self._committed.restore(loader, snapshot_id.end_offset, timestamp)
        await self._pool.run(self._remove, older)
        log.info("the metadata log begins anew at the leader's snapshot %s", snapshot_id.file_name)
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
            loader = restored(snapshot, snapshot_id, self._settings.folder)
        except UnusableMetadata as error:
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"the leader's snapshot: {error}") from error
        try:
            self._disk.rename(path, path.removesuffix(".part"))
            self._disk.sync_dir(self._settings.folder)
        except OSError as error:
            raise sync_failure(error, path) from error
        return snapshot, loader


def _read(records: Buffer) -> Sequence[Batch]:
    try:
        return list(read_batches(records))
    except (CorruptBatch, DecodeError) as error:
        raise KafkaError(
            ErrorCode.CORRUPT_MESSAGE, f"the leader's records cannot be read: {error}"
        ) from error
