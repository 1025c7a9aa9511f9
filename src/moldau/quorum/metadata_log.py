"""The metadata log on disk, `__cluster_metadata-0`, and the list of its snapshots.

`open` blocks and runs once, in the pool. After that the event loop appends, and a thread of the pool syncs
(`flush`). Raft reads the log through this class (`LogView`).

Invariants:

- a segment is durable before the next one is created; - the batches written together have one timestamp,
later than that of the write before (`damage` relies on it); - the log starts at or before the end offset of
the oldest snapshot that is kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from moldau.base.clock import Clock
from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import METADATA_TOPIC, METADATA_TOPIC_ID, TopicPartition
from moldau.protocol.errors import CorruptBatch
from moldau.protocol.schema import Buffer, Message
from moldau.quorum.batches import Batch, control_batch, data_batch, read_batches
from moldau.quorum.bootstrap import make_log_folder
from moldau.quorum.damage import check_log
from moldau.quorum.settings import QuorumSettings
from moldau.quorum.snapshots import SnapshotId, list_snapshots, remove_leftovers
from moldau.raft.types import OffsetAndEpoch
from moldau.storage.disk.disk import Disk, DiskFull, SyncFailed
from moldau.storage.log.append import Origin
from moldau.storage.log.log import Log

_READ_BYTES = 4 << 20


class MetadataLog:
    def __init__(self, log: Log, disk: Disk, clock: Clock, settings: QuorumSettings) -> None:
        self.log = log
        #: The timestamp of the last record.
        self.last_timestamp = 0
        self._clock = clock
        self._snapshots: tuple[OffsetAndEpoch, ...] = ()
        self._find_snapshots(disk, settings.folder)

    @classmethod
    def open(cls, disk: Disk, clock: Clock, settings: QuorumSettings, led_epoch: int = -1) -> MetadataLog:
        """Open and recover the log; raise UnusableMetadata if committed records are damaged.

        `led_epoch` is the epoch that this node led when it stopped; -1 if it was not the leader.
        """
        make_log_folder(disk, settings.folder)
        check_log(disk, settings.folder, settings.node_id, led_epoch)
        log = Log.open(
            disk,
            clock,
            settings.folder,
            TopicPartition(METADATA_TOPIC, 0),
            METADATA_TOPIC_ID,
            settings.log_config(),
        )
        return cls(log, disk, clock, settings)

    def _find_snapshots(self, disk: Disk, folder: str) -> None:
        remove_leftovers(disk, folder)
        for each in list_snapshots(disk, folder):
            if each.end_offset >= self.log.log_start_offset:
                self.snapshot_written(each)

    # LogView.

    @property
    def start_offset(self) -> int:
        return self.log.log_start_offset

    @property
    def end_offset(self) -> int:
        return self.log.log_end_offset

    @property
    def end(self) -> OffsetAndEpoch:
        epoch = self.log.leader_epochs.latest
        if epoch < 0:
            epoch = self._snapshots[-1].epoch if self._snapshots else 0
        return OffsetAndEpoch(self.end_offset, epoch)

    @property
    def snapshots(self) -> tuple[OffsetAndEpoch, ...]:
        return self._snapshots

    def end_of_epoch(self, epoch: int) -> OffsetAndEpoch:
        found, offset = self.log.end_offset_for_epoch(epoch)
        if found < 0:
            return self.end
        earliest = self._snapshots[0] if self._snapshots else None
        if earliest is not None and offset == earliest.offset and found == epoch:
            # The log has no records of that epoch any more, but the snapshot ends with it.
            return earliest
        return OffsetAndEpoch(offset, found)

    # Appending.

    def append(self, batches: Sequence[Sequence[bytes]], epoch: int) -> int:
        """Append encoded records, one batch per inner sequence, all or nothing; return the size."""
        timestamp = self._next_timestamp()
        offset = self.end_offset
        group = bytearray()
        for values in batches:
            group += data_batch(values, offset, epoch, timestamp)
            offset += len(values)
        self.log.append_as_leader(group, epoch, origin=Origin.RAFT_LEADER)
        return len(group)

    def append_control(self, messages: Sequence[Message], epoch: int) -> Batch:
        """Append control records as one batch."""
        data = control_batch(messages, self.end_offset, epoch, self._next_timestamp())
        self.log.append_as_leader(data, epoch, origin=Origin.RAFT_LEADER)
        return next(read_batches(data))

    def append_fetched(self, records: Buffer, batches: Sequence[Batch], leader_epoch: int) -> Sequence[Batch]:
        """Append records fetched from the leader, already decoded in `batches`; return the batches appended,
        which may not be all of them. Raise KafkaError if they do not follow on the end of the log."""
        expected = self.end_offset
        for batch in batches:
            if batch.header.base_offset != expected:
                raise KafkaError(
                    ErrorCode.CORRUPT_MESSAGE,
                    f"the leader sent offset {batch.header.base_offset} where {expected} was expected",
                )
            expected = batch.header.next_offset
        info = self.log.append_as_follower(
            memoryview(records)[: self._bytes_for_one_segment(batches)], leader_epoch
        )
        if info is not None:
            self.last_timestamp = max(self.last_timestamp, info.max_timestamp)
        return [batch for batch in batches if batch.header.next_offset <= self.end_offset]

    def _bytes_for_one_segment(self, batches: Sequence[Batch]) -> int:
        """Return the size of the leading batches that fit into one segment.

        No more is appended at once: a segment must be durable before the next one is created, or a crash
        could leave the second segment without the end of the first.
        """
        room = self.log.config.segment_bytes
        sizes = [batch.header.size_in_bytes for batch in batches]
        left = room - self.log.segments.active.size
        if sizes and sizes[0] <= left:
            room = left
        taken = 0
        for size in sizes:
            if taken and taken + size > room:
                break
            taken += size
        return taken

    def _next_timestamp(self) -> int:
        self.last_timestamp = max(self._clock.time_ms(), self.last_timestamp + 1)
        return self.last_timestamp

    def flush(self) -> None:
        """Sync all appended records. Blocking.

        A failed sync cannot be retried. After `DiskFull`, however, the caller truncates the records that were
        not synced (`truncate`), and those that replace them are written again.
        """
        try:
            self.log.flusher.flush()
        except SyncFailed as error:
            if error.full:
                raise DiskFull(str(error)) from error
            raise

    # Reading.

    def batches(self, start: int, end: int | None = None) -> Iterator[Batch]:
        """Yield the batches from the one that contains `start`. Blocking."""
        for part in self.parts(start, self.end_offset if end is None else end):
            yield from read_batches(part)

    def parts(self, start: int, end: int) -> Iterator[Buffer]:
        """Yield the bytes of whole batches between two offsets. Blocking."""
        offset = start
        while offset < end:
            result = self.log.reader.read(offset, _READ_BYTES, upper_bound=end, blocking=True)
            if result is None or not result.parts:
                raise CorruptBatch(f"no batch can be read at offset {offset}, before the end offset {end}")
            yield from result.parts
            offset = result.next_offset

    # High watermark, truncation and snapshots.

    def set_high_watermark(self, high_watermark: int) -> None:
        self.log.high_watermark = high_watermark

    def truncate(self, offset: int) -> None:
        """Remove the records from `offset` on."""
        self.log.truncate_to(offset)

    def restart_at(self, snapshot: SnapshotId) -> list[SnapshotId]:
        """Remove all records and continue after a snapshot; return the older snapshots, no longer needed."""
        self.log.truncate_fully_and_start_at(snapshot.end_offset)
        older = [SnapshotId(*each) for each in self._snapshots if each.offset < snapshot.end_offset]
        self.snapshots_removed(older)
        return older

    def start_at(self, snapshot: SnapshotId) -> None:
        """Delete the segments before a snapshot's end offset."""
        self.log.delete_records_before(snapshot.end_offset)
        self.log.delete_old_segments(self._clock.time_ms())

    def snapshot_written(self, snapshot: SnapshotId) -> None:
        known = {*self._snapshots, OffsetAndEpoch(snapshot.end_offset, snapshot.epoch)}
        self._snapshots = tuple(sorted(known))

    def snapshots_removed(self, snapshots: Sequence[SnapshotId]) -> None:
        removed = {OffsetAndEpoch(each.end_offset, each.epoch) for each in snapshots}
        self._snapshots = tuple(each for each in self._snapshots if each not in removed)

    def close(self) -> None:
        self.log.close()
