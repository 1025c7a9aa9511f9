"""A metadata log in memory, for the quorum's rules: what is written, and how much of it a crash would leave.

Offsets count entries; a snapshot stands for everything before it. `crash` gives the log as it lies on disk:
entries behind `synced` are gone. A truncation is on disk at once, as cutting a file and forgetting to sync
would only ever leave more than is wanted, which `crash(keep_unsynced=True)` covers.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from moldau.raft.types import OffsetAndEpoch


class Entry(NamedTuple):
    """`value` is anything: the rules never look at it."""

    epoch: int
    value: Any


class MemoryLog:
    """Satisfies `raft.types.LogView`."""

    def __init__(self) -> None:
        self.start_offset = 0
        self.entries: list[Entry] = []
        self.snapshots: tuple[OffsetAndEpoch, ...] = ()
        #: The first offset that a crash may take.
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

    # What a driver does.

    def append(self, entries: tuple[Entry, ...]) -> None:
        self.entries.extend(entries)

    def sync(self, upto: int | None = None) -> None:
        """Everything below is on disk; not less than before."""
        self.synced = max(self.synced, self.end_offset if upto is None else min(upto, self.end_offset))

    def truncate(self, end: int) -> None:
        del self.entries[max(0, end - self.start_offset) :]
        self.synced = min(self.synced, self.end_offset)

    def snapshot(self, offset: int) -> OffsetAndEpoch:
        """Make a snapshot of everything before `offset`; nothing is removed yet."""
        made = OffsetAndEpoch(offset, self.at(offset - 1).epoch)
        self.snapshots = (*self.snapshots, made)
        return made

    def trim(self) -> None:
        """The log before the latest snapshot goes, and older snapshots."""
        latest = self.snapshots[-1]
        del self.entries[: latest.offset - self.start_offset]
        self.start_offset, self.snapshots = latest.offset, (latest,)

    def load(self, snapshot: OffsetAndEpoch) -> None:
        """Begin anew behind a snapshot that was fetched."""
        self.entries.clear()
        self.snapshots, self.start_offset, self.synced = (snapshot,), snapshot.offset, snapshot.offset

    def crash(self, *, keep: int = 0) -> None:
        """What is left after power was lost: what was synced, and by luck some of the rest."""
        self.truncate(min(self.end_offset, self.synced + keep))
        self.synced = self.end_offset
