"""Opening the directory of a log in whatever state it was left.

First, interrupted deletions and compactions are completed or undone (`leftovers`).

After a crash, every segment from the recovery point on is read batch by batch and its indexes are rebuilt;
the log is truncated at the first bad batch, and later segments are removed. After a clean shutdown only the
end of the last segment is read. A missing index is rebuilt, and a last segment that does not end with a whole
batch is recovered in any case.

The state of producers is restored from the newest snapshot and the batches after it.

Indexes before the recovery point are trusted; damage there is found by reads and by `LogReader.check`.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import NamedTuple

from moldau.base.ids import TopicPartition
from moldau.base.json_log import event
from moldau.protocol.records import CorruptBatch
from moldau.storage.disk.open_files import OpenFiles
from moldau.storage.log.config import LogConfig
from moldau.storage.log.leader_epochs import LeaderEpochs
from moldau.storage.log.leftovers import settle_leftovers
from moldau.storage.log.segments import SegmentList
from moldau.storage.producers.restore import apply_to_producers, restore_producers
from moldau.storage.producers.snapshot import ProducerSnapshots
from moldau.storage.producers.state import ProducerState
from moldau.storage.segment.files import LOG, OFFSET_INDEX, TIME_INDEX, TXN_INDEX, file_name
from moldau.storage.segment.reader import StoredBatch, verify_batch
from moldau.storage.segment.segment import MAX_RELATIVE_OFFSET, Segment

logger = logging.getLogger(__name__)


class RecoveredLog(NamedTuple):
    """The contents of a log's directory."""

    segments: SegmentList
    epochs: LeaderEpochs
    producer_state: ProducerState
    snapshots: ProducerSnapshots
    log_start_offset: int
    log_end_offset: int
    recovery_point: int


class Recovery:
    """Loads one directory; used once."""

    def __init__(
        self,
        files: OpenFiles,
        directory: str,
        topic_partition: TopicPartition,
        config: LogConfig,
        *,
        recovery_point: int,
        log_start_offset: int,
        clean_shutdown: bool,
        producer_expiration_ms: int,
        now_ms: int,
    ) -> None:
        self._files = files
        self._disk = files.disk
        self._directory = directory
        self._config = config
        self._recovery_point = recovery_point
        self._log_start_offset = log_start_offset
        self._clean = clean_shutdown
        self._now_ms = now_ms
        names = settle_leftovers(files, directory, config)
        self._names = frozenset(names)
        self._epochs = LeaderEpochs.load(self._disk, directory)
        self._producers = ProducerState(topic_partition, producer_expiration_ms)
        self._snapshots = ProducerSnapshots(self._disk, directory, names)
        self._segments: list[Segment] = []
        self._end: int | None = None

    def load(self) -> RecoveredLog:
        self._open_segments()
        first = self._first_to_recover()
        if first is not None:
            # Truncated files and rebuilt indexes are not on disk until the next flush.
            self._recovery_point = min(self._recovery_point, self._segments[first].base_offset)
        for segment in self._segments[:first]:
            if self._lacks_index(segment):
                self._rebuild_indexes(segment)
        if first is not None:
            self._recover_from(first)
        log_end_offset = self._find_end()
        self._epochs.truncate_from_end(log_end_offset)
        log_start_offset = self._log_start_offset
        if not self._config.tiered:
            log_start_offset = max(log_start_offset, self._segments[0].base_offset)
        self._epochs.truncate_from_start(log_start_offset)
        self._snapshots.remove_stray([segment.base_offset for segment in self._segments])
        self._load_producers(log_start_offset, log_end_offset)
        recovery_point = min(self._recovery_point, log_end_offset)
        return RecoveredLog(
            SegmentList(self._segments),
            self._epochs,
            self._producers,
            self._snapshots,
            log_start_offset,
            log_end_offset,
            log_end_offset if self._clean and first is None else recovery_point,
        )

    def _open_segments(self) -> None:
        suffix = f".{LOG}"
        for name in sorted(self._names):
            if name.endswith(suffix) and name.removesuffix(suffix).isdecimal():
                base_offset = int(name.removesuffix(suffix))
                self._segments.append(Segment.open(self._files, self._directory, base_offset, self._config))

    def _first_to_recover(self) -> int | None:
        """The index of the first segment that must be recovered."""
        candidates = [number for number, segment in enumerate(self._segments) if self._is_damaged(segment)]
        if not self._clean and self._segments:
            candidates.append(SegmentList(self._segments).floor(self._recovery_point))
        elif self._segments and not self._ends_with_whole_batch(self._segments[-1]):
            candidates.append(len(self._segments) - 1)
        return min(candidates, default=None)

    def _is_damaged(self, segment: Segment) -> bool:
        if file_name(segment.base_offset, TXN_INDEX) not in self._names or segment.txn_index.is_sane():
            return False
        logger.warning("%s has a damaged transaction index, which is rebuilt", segment.files.log_path)
        return True

    def _ends_with_whole_batch(self, segment: Segment) -> bool:
        if segment.size and self._lacks_index(segment):
            return False
        try:
            self._end = segment.next_offset()
        except CorruptBatch as error:
            logger.warning("%s, after a clean shutdown", error)
            return False
        return True

    def _lacks_index(self, segment: Segment) -> bool:
        return any(
            file_name(segment.base_offset, kind) not in self._names for kind in (OFFSET_INDEX, TIME_INDEX)
        )

    def _rebuild_indexes(self, segment: Segment) -> None:
        """Rebuild lost indexes; the batches had been flushed, so nothing is truncated."""
        logger.warning("%s lacks an index; its indexes are rebuilt", segment.files.log_path)
        size = segment.size
        segment.reset_indexes(transactions=False)
        try:
            for batch in segment.batches(0, size):
                segment.index_batch(batch.header, batch.position)
        except CorruptBatch as error:
            logger.error("%s", error, extra=event("log.damaged"))
        segment.size = size
        segment.finish()

    def _recover_from(self, number: int) -> None:
        """Recover the segments from one on, up to the first damage."""
        base_offset = self._segments[number].base_offset
        self._restore_producers(self._log_start_offset, base_offset)
        for place in range(number, len(self._segments)):
            segment = self._segments[place]
            if place > number:
                self._take_snapshot(segment.base_offset)
            if self._recover(segment, self._end_of(place)):
                self._remove(self._segments[place + 1 :])
                return

    def _end_of(self, place: int) -> int:
        """The offset before which all batches of a segment must end."""
        following = [segment.base_offset for segment in self._segments[place + 1 : place + 2]]
        return min([self._segments[place].base_offset + MAX_RELATIVE_OFFSET + 1, *following])

    def _recover(self, segment: Segment, end_offset: int) -> bool:
        """Rebuild the indexes and truncate at damage; return whether there was any."""
        end, valid = segment.size, 0
        segment.reset_indexes(transactions=True)
        path, next_offset = segment.files.log_path, segment.base_offset
        try:
            for batch in segment.batches(0, end):
                verify_batch(path, batch.position, batch.data, batch.header, next_offset, end_offset)
                segment.index_batch(batch.header, batch.position)
                self._account(segment, batch)
                next_offset = batch.header.next_offset
                valid = batch.position + batch.header.size_in_bytes
        except CorruptBatch as error:
            logger.warning("%s; the log is truncated there", error, extra=event("log.damaged"))
        segment.cut_to(valid)
        segment.mark_verified()
        segment.finish()
        self._producers.end_offset = self._end = next_offset
        return valid < end

    def _account(self, segment: Segment, batch: StoredBatch) -> None:
        header = batch.header
        if header.partition_leader_epoch > self._epochs.latest:
            self._epochs.assign(header.partition_leader_epoch, header.base_offset)
        aborted = apply_to_producers(self._producers, batch)
        if aborted is not None:
            segment.txn_index.append(aborted)

    def _remove(self, segments: Sequence[Segment]) -> None:
        for segment in segments:
            logger.warning("%s is removed: it follows damage", segment.files.log_path)
            for path in segment.files.existing():
                self._files.forget(path)
                self._disk.remove(path)
            self._segments.remove(segment)

    def _find_end(self) -> int:
        """Return the log end offset; afterwards there is at least one segment."""
        if self._segments:
            end = self._segments[-1].next_offset() if self._end is None else self._end
            if end >= self._log_start_offset:
                return end
            logger.warning(
                "%s ends at %d, before its log start offset %d: the log restarts there, empty",
                self._directory,
                end,
                self._log_start_offset,
            )
            self._remove(list(self._segments))
            self._epochs.clear()
        self._segments.append(
            Segment.create(
                self._files, self._directory, self._log_start_offset, self._config, now_ms=self._now_ms
            )
        )
        return self._log_start_offset

    def _load_producers(self, log_start_offset: int, log_end_offset: int) -> None:
        if self._producers.end_offset == log_end_offset and log_end_offset > log_start_offset:
            if self._snapshots.latest != log_end_offset:
                self._take_snapshot(log_end_offset)
            return
        self._restore_producers(log_start_offset, log_end_offset)

    def _restore_producers(self, start: int, end: int) -> None:
        segments = SegmentList(self._segments)
        trusting = self._clean
        restore_producers(
            self._producers, self._snapshots, segments, start, end, self._now_ms, trust_absence=trusting
        )

    def _take_snapshot(self, offset: int) -> None:
        self._producers.end_offset = offset
        try:
            self._snapshots.write(offset, self._producers.to_snapshot(), sync=True)
        except OSError as error:
            logger.warning("%s: cannot write the producer snapshot at %d: %s", self._directory, offset, error)
