"""How a log lies on disk: its segments, leader epochs and producer snapshots, and their coming and going.

The last segment is the active one, the only one that grows. `roll` closes it and begins another; `flush`
brings everything below an offset to the disk and then moves the recovery point there, up to which a crash
needs no checking. What is no longer wanted is renamed to `.deleted` and removed after `file.delete.delay.ms`,
so that whoever is reading it can finish.

The loop owns all of this. `flush`, `check` and `remove_deleted_files` wait for the disk and run in a thread
while the loop goes on; `_generation` grows before and after every change that takes something away, so that
they, and reads, notice when the ground moved under them. Who stumbles in the middle of one waits for its end
before judging (`_unchanged_since`): a file that is not there then is missing indeed.
"""

from __future__ import annotations

import logging
import posixpath
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from moldau.base.clock import Clock
from moldau.base.errors import KafkaError
from moldau.base.ids import Randomness, TopicPartition, Uuid
from moldau.protocol.records import CorruptBatch
from moldau.storage.directories.partition_metadata import sync_topic_id
from moldau.storage.disk.disk import storage_failure, sync_failure
from moldau.storage.disk.open_files import OpenFiles
from moldau.storage.log.config import LogConfig
from moldau.storage.log.leader_epochs import LeaderEpochs
from moldau.storage.producers.snapshot import ProducerSnapshots
from moldau.storage.producers.state import ProducerState
from moldau.storage.segment.files import CLEANED, DELETED, LOG, SWAP
from moldau.storage.segment.list import SegmentList
from moldau.storage.segment.reader import verify_batch
from moldau.storage.segment.segment import MAX_RELATIVE_OFFSET, Segment

logger = logging.getLogger(__name__)


class LoadedLog(NamedTuple):
    """What opening a folder found."""

    segments: SegmentList
    epochs: LeaderEpochs
    producer_state: ProducerState
    snapshots: ProducerSnapshots
    log_start_offset: int
    log_end_offset: int
    recovery_point: int


class Place(NamedTuple):
    """Where a log lies and whose it is; unless `synced`, a power cut could lose the folder or the id."""

    directory: str
    topic_partition: TopicPartition
    topic_id: Uuid | None
    synced: bool


class _Deletion(NamedTuple):
    due_ms: int
    names: list[str]


class LogFiles:
    __slots__ = (
        "_change_lock",
        "_clock",
        "_deletions",
        "_end",
        "_files",
        "_flush_lock",
        "_generation",
        "_last_flush_ms",
        "_list",
        "_opened_at",
        "_place_synced",
        "_randomness",
        "_retreats",
        "_snapshots",
        "config",
        "directory",
        "leader_epochs",
        "log_end_offset",
        "log_start_offset",
        "producer_state",
        "recovery_point",
        "topic_id",
        "topic_partition",
    )

    def __init__(
        self,
        files: OpenFiles,
        clock: Clock,
        randomness: Randomness | None,
        place: Place,
        config: LogConfig,
        loaded: LoadedLog,
    ) -> None:
        self._files = files
        self._clock = clock
        self._randomness = randomness
        self.directory, self.topic_partition, self.topic_id, self._place_synced = place
        self.config = config
        self._list = loaded.segments
        self.leader_epochs = loaded.epochs
        self.producer_state = loaded.producer_state
        self._snapshots = loaded.snapshots
        self.log_start_offset = loaded.log_start_offset
        self.log_end_offset = loaded.log_end_offset
        self.recovery_point = loaded.recovery_point
        self._last_flush_ms = clock.time_ms()
        self._flush_lock = threading.Lock()
        self._change_lock = threading.RLock()
        self._deletions: list[_Deletion] = []
        self._generation = 0
        self._retreats = 0
        flushed = self.recovery_point == self.log_end_offset
        #: What a log looks like that nothing was done to since it was opened, all of it on the disk.
        self._opened_at = (self.log_end_offset, self._list) if flushed else None
        self._begin_active(self._list.active)

    @property
    def segments(self) -> tuple[Segment, ...]:
        """Ascending; the last one is the active segment."""
        return self._list.items

    @property
    def size(self) -> int:
        """Bytes of all `.log` files."""
        return sum(segment.size for segment in self._list.items)

    @property
    def generation(self) -> int:
        """Another number when something was taken away since."""
        return self._generation

    def maybe_roll(self, now_ms: int, incoming_bytes: int = 0) -> bool:
        """Close the active segment if its size or age demands it, even when nothing comes."""
        active = self._list.active
        if not self._must_roll(active, incoming_bytes, self.log_end_offset, now_ms, now_ms):
            return False
        self.roll()
        return True

    def _must_roll(
        self, active: Segment, size: int, last_offset: int, max_timestamp: int, now_ms: int
    ) -> bool:
        config = self.config
        try:
            return (
                active.size > config.segment_bytes - size
                or active.index_full
                or last_offset - active.base_offset > MAX_RELATIVE_OFFSET
                or (
                    active.size > 0
                    and active.time_waited(now_ms, max_timestamp)
                    > config.max_segment_ms - active.roll_jitter_ms
                )
            )
        except OSError as error:
            raise self._failure(error) from error

    def roll(self, base_offset: int | None = None) -> Segment:
        """Close the active segment and begin a new one, at the log end unless told otherwise."""
        old = self._list.active
        base = max(self.log_end_offset, base_offset or 0)
        if base == old.base_offset:
            return old
        try:
            old.finish()
            new = Segment.create(self._files, self.directory, base, self.config, now_ms=self._clock.time_ms())
        except OSError as error:
            old.resume()
            raise self._failure(error) from error
        self._retreat(old.base_offset)
        self._list = self._list.with_changes(added=[new])
        self._begin_active(new)
        self.producer_state.end_offset = base
        try:
            self._save_producers(sync=False)
        except OSError as error:
            # It would only have shortened recovery.
            logger.warning("%s: no producer snapshot at %d: %s", self.directory, base, error)
        return new

    def _retreat(self, offset: int) -> None:
        """From `offset` on, something is not on the disk: a flush that is under way must not say otherwise.

        Closing a segment is such a case: its batches may have been flushed, but its indexes were not.
        """
        with self._change_lock:
            self._retreats += 1
            self.recovery_point = min(self.recovery_point, offset)

    def _begin_active(self, segment: Segment) -> None:
        segment.resume()
        self._end = (self.log_end_offset, segment, segment.size)
        jitter = min(self.config.segment_jitter_ms, self.config.segment_ms)
        if self._randomness is not None and jitter > 0:
            segment.roll_jitter_ms = self._randomness.randrange(0, jitter)

    def _save_producers(self, *, sync: bool) -> None:
        state = self.producer_state
        latest = self._snapshots.latest
        if state.end_offset <= (self.log_start_offset if latest is None else latest):
            return
        self._snapshots.write(state.end_offset, state.to_snapshot(), sync=sync)

    def needs_flush(self, now_ms: int | None = None) -> bool:
        """Is `flush.messages` reached? With a time: or `flush.ms` over, or a closed segment not flushed?"""
        unflushed = self.log_end_offset - self.recovery_point
        if unflushed <= 0:
            return False
        if unflushed >= self.config.flush_messages:
            return True
        return now_ms is not None and (
            now_ms - self._last_flush_ms >= self.config.flush_ms
            or self._list.active.base_offset > self.recovery_point
        )

    def flush(self, up_to: int | None = None) -> int:
        """Bring all below an offset (default: the log end) to the disk; gives back the recovery point."""
        with self._flush_lock:
            target = self.log_end_offset if up_to is None else up_to
            while target > self.recovery_point:
                generation, retreats = self._generation, self._retreats
                syncing = False
                try:
                    self.leader_epochs.write()
                    syncing = True
                    self._sync(target)
                except OSError as error:
                    if self._unchanged_since(generation):
                        failure = sync_failure if syncing else storage_failure
                        raise failure(error, self.directory) from error
                    target = min(target, self.log_end_offset)
                    continue
                with self._change_lock:
                    if retreats == self._retreats:
                        self.recovery_point = max(self.recovery_point, target)
                break
            self._last_flush_ms = self._clock.time_ms()
            return self.recovery_point

    def _sync(self, target: int) -> None:
        segments = [item for item in self._list.since(self.recovery_point) if item.base_offset < target]
        for segment in segments:
            segment.flush()
        self._snapshots.sync()
        if not self._place_synced:
            self._sync_place()
        elif segments and segments[-1].base_offset >= self.recovery_point:
            self._files.disk.sync_dir(self.directory)

    def sync_place(self) -> None:
        """Make sure that the folder is found under its name after a power cut. Blocking."""
        try:
            with self._flush_lock:
                self._sync_place()
        except OSError as error:
            raise self._failure(error) from error

    def _sync_place(self) -> None:
        """The folder, what is in it and what it is called."""
        disk, directory = self._files.disk, self.directory
        if self.topic_id is not None:
            sync_topic_id(disk, directory)
        disk.sync_dir(directory)
        disk.sync_dir(posixpath.dirname(directory))
        self._place_synced = True

    def replace_segments(self, new_base_offsets: Sequence[int], old: Sequence[Segment]) -> list[Segment]:
        """Put finished `.cleaned` segments in the place of old ones; gives back the new ones.

        In this order, so that a crash at any point leaves the old or the new: `.cleaned` to `.swap`, old ones
        to `.deleted`, `.swap` to nothing.
        """
        new = [
            Segment.open(self._files, self.directory, base, self.config, suffix=CLEANED)
            for base in sorted(new_base_offsets)
        ]
        with self._changing():
            try:
                for segment in reversed(new):
                    segment.change_suffix(SWAP)
                self._discard(old, keep_snapshots_at=set(new_base_offsets))
                for segment in new:
                    segment.change_suffix("")
            except OSError as error:
                # No room for a name: the old ones stay, and the new ones are of no use.
                _rename_back(new, CLEANED)
                _rename_back(old, "")
                raise self._failure(error) from error
            self._list = self._list.with_changes(without=old, added=new)
        return new

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """Inside, files are renamed, cut or removed."""
        with self._change_lock:
            self._generation += 1
            try:
                yield
            finally:
                self._generation += 1

    def _unchanged_since(self, generation: int) -> bool:
        """Asked in a thread that met something odd: was it because of a change, perhaps not over yet?"""
        with self._change_lock:
            return generation == self._generation

    def _discard(self, segments: Sequence[Segment], *, keep_snapshots_at: set[int] | None = None) -> None:
        """Rename files for later deletion, inside `_changing`; all or none. The caller changes the list."""
        paths: list[str] = []
        for segment in segments:
            try:
                segment.change_suffix(DELETED)
            except OSError:
                _rename_back(segments, "")
                raise
            paths += segment.paths()
            if segment.base_offset not in (keep_snapshots_at or ()):
                snapshot = self._snapshots.mark_deleted(segment.base_offset, DELETED)
                paths += [snapshot] if snapshot else []
        if paths:
            due_ms = int(self._clock.monotonic() * 1000) + self.config.file_delete_delay_ms
            self._deletions.append(_Deletion(due_ms, [posixpath.basename(path) for path in paths]))

    def remove_deleted_files(self) -> int:
        """Remove `.deleted` files whose delay is over; how many still wait."""
        now_ms = int(self._clock.monotonic() * 1000)
        try:
            for deletion in [item for item in self._deletions if item.due_ms <= now_ms]:
                for name in deletion.names:
                    self._files.disk.remove(f"{self.directory}/{name}")
                self._deletions.remove(deletion)
        except OSError as error:
            raise self._failure(error) from error
        return sum(len(deletion.names) for deletion in self._deletions)

    def rename_directory(self, directory: str) -> None:
        """The folder gets a new name: the topic is being deleted, or a replica has moved here. Blocking."""
        with self._flush_lock, self._changing():
            try:
                self._files.disk.rename(self.directory, directory)
            except OSError as error:
                raise self._failure(error) from error
            self._place_synced = False
            self._files.forget_directory(self.directory)
            self.directory = directory
            for segment in self._list.items:
                segment.move(directory)
            self.leader_epochs.move(directory)
            self._snapshots.move(directory)

    def check(self) -> int:
        """Verify all batches of the closed segments. Damage is logged, and met again by reads; how many.

        Segments that were cut, removed or swapped since it began are left for the next time.
        """
        found = 0
        generation, segments = self._generation, self._list
        for number, segment in enumerate(segments.items[:-1]):
            try:
                damage = _check_segment(segment, segments.end_of(number, self.log_end_offset))
            except OSError as error:
                if self._unchanged_since(generation):
                    raise self._failure(error) from error
                continue
            if damage and self._unchanged_since(generation):
                segment.reader.distrust()
                for message in damage:
                    logger.error("%s", message)
                found += len(damage)
        return found

    def close(self) -> None:
        """Clean shutdown: everything is complete and on the disk, and the next start needs no recovery."""
        try:
            with self._flush_lock:
                self._complete()
        except OSError as error:
            raise self._failure(error) from error
        finally:
            for segment in self._list.items:
                segment.forget()

    def _complete(self) -> None:
        if self._opened_at != (self.log_end_offset, self._list):
            self.producer_state.end_offset = self.log_end_offset
            self._save_producers(sync=True)
            self._list.active.finish()
            self.recovery_point = min(self.recovery_point, self._list.active.base_offset)
            self.leader_epochs.write()
            self._sync(self.log_end_offset + 1)
            self.recovery_point = self.log_end_offset
        elif not self._place_synced:
            self._sync_place()

    def _failure(self, error: OSError) -> KafkaError:
        return storage_failure(error, self.directory)


def _rename_back(segments: Sequence[Segment], suffix: str) -> None:
    """What was renamed gets its name again, as far as that works."""
    for segment in segments:
        try:
            if segment.suffix != suffix:
                segment.change_suffix(suffix)
        except OSError as error:
            logger.error("%s cannot get its name back: %s", segment.path(LOG), error)


def _check_segment(segment: Segment, end_offset: int) -> list[str]:
    damage: list[str] = []
    path, next_offset = segment.path(LOG), segment.base_offset
    try:
        for batch in segment.batches():
            try:
                verify_batch(path, batch.position, batch.data, batch.header, next_offset, end_offset)
                next_offset = batch.header.next_offset
            except CorruptBatch as error:
                damage.append(str(error))
    except CorruptBatch as error:
        damage.append(str(error))
    return damage
