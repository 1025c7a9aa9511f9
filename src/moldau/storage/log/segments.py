"""The segments of a log: the list of them, and how they are added, replaced and deleted on disk.

`SegmentList` is immutable: every change makes a new list, so a reader in a thread keeps the one it began
with. `LogSegments` holds the current list and the log end offset, and is the only place that creates, renames
or removes segment files. Files that are no longer needed are renamed to `.deleted` and removed after
`file.delete.delay.ms`, so that readers can finish.

The event loop owns all of this. Work in a thread (reads, flushes, checks) overlaps with it: `generation`
grows before and after every change that takes something away. A thread that fails compares generations
through `unchanged_since`, which waits for a change in progress: only an error without a change is a real one.
"""

from __future__ import annotations

import logging
import posixpath
import threading
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from moldau.base.clock import Clock
from moldau.base.errors import KafkaError
from moldau.base.ids import Randomness
from moldau.storage.disk.disk import storage_failure
from moldau.storage.disk.open_files import OpenFiles
from moldau.storage.log.config import LogConfig
from moldau.storage.producers.snapshot import ProducerSnapshots
from moldau.storage.segment.files import CLEANED, DELETED, SWAP
from moldau.storage.segment.segment import MAX_RELATIVE_OFFSET, Segment

logger = logging.getLogger(__name__)


class SegmentList:
    """Segments in ascending order of their base offsets; the last one is the active segment."""

    __slots__ = ("_bases", "items")

    def __init__(self, segments: Iterable[Segment]) -> None:
        self.items = tuple(sorted(segments, key=lambda segment: segment.base_offset))
        self._bases = tuple(segment.base_offset for segment in self.items)

    @property
    def active(self) -> Segment:
        return self.items[-1]

    def floor(self, offset: int) -> int:
        """The index of the segment whose range includes `offset`; 0 for an offset before all of them."""
        return max(0, bisect_right(self._bases, offset) - 1)

    def since(self, offset: int) -> tuple[Segment, ...]:
        """The segments that may hold `offset` or a later one."""
        return self.items[self.floor(offset) :]

    def end_of(self, number: int, log_end_offset: int) -> int:
        """The offset at which the range of a segment ends."""
        return self._bases[number + 1] if number + 1 < len(self._bases) else log_end_offset

    def with_changes(self, *, without: Sequence[Segment] = (), added: Sequence[Segment] = ()) -> SegmentList:
        kept = [segment for segment in self.items if segment not in without]
        return SegmentList([*kept, *added])


class _Deletion(NamedTuple):
    due_ms: int
    names: list[str]


class LogSegments:
    """The current segments of one log. `end` is what readers in threads take as one consistent value."""

    __slots__ = (
        "_clock",
        "_deletions",
        "_randomness",
        "_snapshots",
        "change_lock",
        "config",
        "current",
        "directory",
        "end",
        "end_offset",
        "generation",
        "open_files",
    )

    def __init__(
        self,
        open_files: OpenFiles,
        clock: Clock,
        randomness: Randomness | None,
        directory: str,
        config: LogConfig,
        current: SegmentList,
        snapshots: ProducerSnapshots,
        end_offset: int,
    ) -> None:
        """Without `randomness`, `segment.jitter.ms` has no effect."""
        self.open_files = open_files
        self._clock = clock
        self._randomness = randomness
        self.directory = directory
        self.config = config
        self.current = current
        self._snapshots = snapshots
        self.end_offset = end_offset
        self.generation = 0
        self.change_lock = threading.RLock()
        self._deletions: list[_Deletion] = []
        #: The log end offset, the active segment and the bytes of it that readers may see.
        self.end: tuple[int, Segment, int]
        self._start_active(current.active)

    @property
    def items(self) -> tuple[Segment, ...]:
        """Ascending; the last one is the active segment."""
        return self.current.items

    @property
    def active(self) -> Segment:
        return self.current.items[-1]

    @property
    def size(self) -> int:
        """Bytes of all `.log` files."""
        return sum(segment.size for segment in self.current.items)

    def advance(self, end_offset: int, active: Segment) -> None:
        """Move the log end after a write to the active segment."""
        self.end = (end_offset, active, active.size)
        self.end_offset = end_offset

    def must_roll(self, size: int, last_offset: int, max_timestamp: int, now_ms: int) -> bool:
        """Whether `size` bytes up to `last_offset` must go to a new segment."""
        config, active = self.config, self.current.items[-1]
        try:
            return (
                active.size > config.segment_bytes - size
                or active.index_full
                or last_offset - active.base_offset > MAX_RELATIVE_OFFSET
                or (
                    active.size > 0
                    and active.age_ms(now_ms, max_timestamp) > config.max_segment_ms - active.roll_jitter_ms
                )
            )
        except OSError as error:
            raise self.failure(error) from error

    def roll(self, base_offset: int) -> Segment:
        """Close the active segment and add a new one."""
        old = self.active
        try:
            old.finish()
            new = self._create(base_offset)
        except OSError as error:
            old.resume()
            raise self.failure(error) from error
        self.current = self.current.with_changes(added=[new])
        self._start_active(new)
        return new

    def _create(self, base_offset: int) -> Segment:
        now_ms = self._clock.time_ms()
        return Segment.create(self.open_files, self.directory, base_offset, self.config, now_ms=now_ms)

    def _start_active(self, segment: Segment) -> None:
        segment.resume()
        self.end = (self.end_offset, segment, segment.size)
        jitter = min(self.config.segment_jitter_ms, self.config.segment_ms)
        if self._randomness is not None and jitter > 0:
            segment.roll_jitter_ms = self._randomness.randrange(0, jitter)

    def delete(self, expired: Sequence[Segment]) -> None:
        """Take segments out of the log; their files are removed later."""
        remaining = self.current.with_changes(without=expired)
        with self.changing():
            self._discard(expired)
            self.current = remaining

    def truncate_to(self, offset: int) -> None:
        """Remove everything at or after an offset that the first segment or a later one holds."""
        # The last segment first: a crash in between leaves a log without gaps.
        later = [segment for segment in reversed(self.items) if segment.base_offset > offset]
        self._discard(later)
        self.current = self.current.with_changes(without=later)
        self.active.truncate_to(offset)
        self.end_offset = offset
        self._start_active(self.active)

    def restart_at(self, offset: int) -> None:
        """Replace all segments by an empty one; they are kept if it cannot be created."""
        self._discard(self.items)
        try:
            new = self._create(offset)
        except OSError:
            _rename_back(self.items, "")
            raise
        self.current = SegmentList([new])
        self.end_offset = offset
        self._start_active(new)

    def replace(self, new_base_offsets: Sequence[int], old: Sequence[Segment]) -> list[Segment]:
        """Put finished `.cleaned` segments in the place of old ones; return the new ones.

        The order of renames makes a crash at any point leave either the old or the new segments: `.cleaned`
        to `.swap`, old ones to `.deleted`, `.swap` to no suffix.
        """
        new = [
            Segment.open(self.open_files, self.directory, base, self.config, suffix=CLEANED)
            for base in sorted(new_base_offsets)
        ]
        with self.changing():
            try:
                for segment in reversed(new):
                    segment.files.change_suffix(SWAP)
                self._discard(old, keep_snapshots_at=set(new_base_offsets))
                for segment in new:
                    segment.files.change_suffix("")
            except OSError as error:
                # The disk has no room for a name: the old segments stay, the new ones are of no use.
                _rename_back(new, CLEANED)
                _rename_back(old, "")
                raise self.failure(error) from error
            self.current = self.current.with_changes(without=old, added=new)
        return new

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Guard a block that renames, truncates or removes files."""
        with self.change_lock:
            self.generation += 1
            try:
                yield
            finally:
                self.generation += 1

    def unchanged_since(self, generation: int) -> bool:
        """Whether no change began since; waits for the end of one in progress. For threads that failed."""
        with self.change_lock:
            return generation == self.generation

    def _discard(self, segments: Sequence[Segment], *, keep_snapshots_at: set[int] | None = None) -> None:
        """Rename files for later deletion, all or none, inside `changing`. The caller changes the list."""
        paths: list[str] = []
        for segment in segments:
            try:
                segment.files.change_suffix(DELETED)
            except OSError:
                _rename_back(segments, "")
                raise
            paths += segment.files.existing()
            if segment.base_offset not in (keep_snapshots_at or ()):
                snapshot = self._snapshots.mark_deleted(segment.base_offset, DELETED)
                paths += [snapshot] if snapshot else []
        if paths:
            due_ms = int(self._clock.monotonic() * 1000) + self.config.file_delete_delay_ms
            self._deletions.append(_Deletion(due_ms, [posixpath.basename(path) for path in paths]))

    def remove_deleted_files(self) -> int:
        """Remove `.deleted` files whose delay has passed; return how many files still wait."""
        now_ms = int(self._clock.monotonic() * 1000)
        try:
            for deletion in [item for item in self._deletions if item.due_ms <= now_ms]:
                for name in deletion.names:
                    self.open_files.disk.remove(f"{self.directory}/{name}")
                self._deletions.remove(deletion)
        except OSError as error:
            raise self.failure(error) from error
        return sum(len(deletion.names) for deletion in self._deletions)

    def rename_directory(self, directory: str) -> None:
        """Rename the log's directory, inside `changing`. Blocking."""
        try:
            self.open_files.disk.rename(self.directory, directory)
        except OSError as error:
            raise self.failure(error) from error
        self.open_files.forget_directory(self.directory)
        self.directory = directory
        for segment in self.items:
            segment.files.move(directory)
        self._snapshots.move(directory)

    def close_files(self) -> None:
        for segment in self.items:
            segment.files.close()

    def failure(self, error: OSError) -> KafkaError:
        """The `DiskFull` or `LogDirectoryFailed` that an error of the disk stands for."""
        return storage_failure(error, self.directory)


def _rename_back(segments: Sequence[Segment], suffix: str) -> None:
    """Undo renames as far as the disk allows."""
    for segment in segments:
        try:
            if segment.files.suffix != suffix:
                segment.files.change_suffix(suffix)
        except OSError as error:
            logger.error("Cannot rename %s back: %s", segment.files.log_path, error)
