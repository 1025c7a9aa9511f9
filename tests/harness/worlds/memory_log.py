"""A metadata log in memory that tracks which entries are synced and what a crash leaves.

Offsets count entries; a snapshot replaces the entries before it. `crash` drops entries after `synced`, except
those that `keep` names. A truncation is durable at once: an unsynced one could only leave more entries, which
`keep` covers.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from moldau.raft.types import OffsetAndEpoch


class Entry(NamedTuple):
    """`value` is arbitrary: Raft does not look at it."""

    epoch: int
    value: Any


class MemoryLog:
    """Implements `raft.local_log.LogView`."""

    def __init__(self) -> None:
        self.start_offset = 0
        self.entries: list[Entry] = []
        self.snapshots: tuple[OffsetAndEpoch, ...] = ()
        #: The first offset that a crash may lose.
        self.synced = 0

    @property
    def end_offset(self) -> int:
        return self.start_offset + len(self.entries)

    @property
    def end(self) -> OffsetAndEpoch:
        if self.entries:
            return OffsetAndEpoch(self.end_offset, self.entries[-1].epoch)
        return self.snapshots[-1] if self.snapshots else OffsetAndEpoch(0, 0)

    def end_of_epoch(self, epoch: int) -> OffsetAndEpoch:
        for offset in range(self.end_offset, self.start_offset, -1):
            found = self.at(offset - 1).epoch
            if found <= epoch:
                return OffsetAndEpoch(offset, found)
        older = [each for each in self.snapshots if each.offset <= self.start_offset and each.epoch <= epoch]
        return older[-1] if older else OffsetAndEpoch(self.start_offset, 0)

    def at(self, offset: int) -> Entry:
        return self.entries[offset - self.start_offset]

    def read(self, offset: int, count: int) -> tuple[Entry, ...]:
        first = offset - self.start_offset
        return tuple(self.entries[first : first + count])

    # Driver operations.

    def append(self, entries: tuple[Entry, ...]) -> None:
        self.entries.extend(entries)

    def sync(self, upto: int | None = None) -> None:
        """Make entries before `upto` durable."""
        self.synced = max(self.synced, self.end_offset if upto is None else min(upto, self.end_offset))

    def truncate(self, end: int) -> None:
        del self.entries[max(0, end - self.start_offset) :]
        self.synced = min(self.synced, self.end_offset)

    def snapshot(self, offset: int) -> OffsetAndEpoch:
        """Add a snapshot of the entries before `offset` without removing them."""
        made = OffsetAndEpoch(offset, self.at(offset - 1).epoch)
        self.snapshots = (*self.snapshots, made)
        return made

    def trim(self) -> None:
        """Remove the entries before the latest snapshot, and older snapshots."""
        latest = self.snapshots[-1]
        del self.entries[: latest.offset - self.start_offset]
        self.start_offset, self.snapshots = latest.offset, (latest,)

    def load(self, snapshot: OffsetAndEpoch) -> None:
        """Restart the log at a fetched snapshot."""
        self.entries.clear()
        self.snapshots, self.start_offset, self.synced = (snapshot,), snapshot.offset, snapshot.offset

    def crash(self, *, keep: int = 0) -> None:
        """Lose the entries that are not synced, except `keep` of them."""
        self.truncate(min(self.end_offset, self.synced + keep))
        self.synced = self.end_offset
