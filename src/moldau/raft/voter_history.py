"""Who voted from which offset on.

A dynamic quorum keeps its voters in the log, and they count as soon as they are appended, long before they
are committed. So when the end of the log is cut off, the voters go back to what they were; and a snapshot
must hold the voters of its own offset and not today's.

What a snapshot says stands at the offset before its end; the snapshot that formatting wrote ends at 0, so its
voters stand at -1: a leader that finds them there writes them into the log.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Generic, TypeVar

from moldau.raft.voters import STATIC, VoterSet

T = TypeVar("T")


@dataclass(slots=True)
class _History(Generic[T]):
    entries: list[tuple[int, T]] = field(default_factory=list)

    def add(self, offset: int, value: T) -> None:
        self.truncate(offset)
        self.entries.append((offset, value))

    def at(self, offset: int) -> T | None:
        return next((value for start, value in reversed(self.entries) if start <= offset), None)

    def truncate(self, end_offset: int) -> None:
        self.entries = [entry for entry in self.entries if entry[0] < end_offset]

    def forget_before(self, start_offset: int) -> None:
        older = [entry for entry in self.entries if entry[0] <= start_offset]
        self.entries = older[-1:] + [entry for entry in self.entries if entry[0] > start_offset]


class VoterHistory:
    """`static` are the voters of the configuration, with their endpoints; empty in a dynamic quorum."""

    def __init__(self, static: VoterSet | None = None) -> None:
        self.static = static if static is not None else VoterSet()
        self._voters: _History[VoterSet] = _History()
        self._versions: _History[int] = _History()

    @property
    def voters(self) -> VoterSet:
        """The latest, committed or not."""
        return self._voters.entries[-1][1] if self._voters.entries else self.static

    @property
    def previous_voters(self) -> VoterSet:
        """Before the latest change."""
        return self._voters.entries[-2][1] if len(self._voters.entries) > 1 else self.static

    @property
    def kraft_version(self) -> int:
        return self._versions.entries[-1][1] if self._versions.entries else STATIC

    @property
    def voters_offset(self) -> int | None:
        """Where the latest voters stand; None when they are the configuration's."""
        return self._voters.entries[-1][0] if self._voters.entries else None

    def add(self, offset: int, *, kraft_version: int | None = None, voters: VoterSet | None = None) -> None:
        if kraft_version is not None:
            self._versions.add(offset, kraft_version)
        if voters is not None:
            self._voters.add(offset, voters)

    def voters_at(self, offset: int) -> VoterSet:
        """Who voted when `offset` was the last record: what a snapshot that ends behind it says."""
        found = self._voters.at(offset)
        return self.static if found is None else found

    def kraft_version_at(self, offset: int) -> int:
        found = self._versions.at(offset)
        return STATIC if found is None else found

    def truncate(self, end_offset: int) -> None:
        """The log ends here now."""
        self._voters.truncate(end_offset)
        self._versions.truncate(end_offset)

    def forget_before(self, start_offset: int) -> None:
        """A snapshot that ends here exists; nobody will ask for older ones."""
        self._voters.forget_before(start_offset)
        self._versions.forget_before(start_offset)

    def clear(self) -> None:
        self._voters.entries.clear()
        self._versions.entries.clear()
