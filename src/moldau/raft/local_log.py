"""The local log as Raft sees it: its contents (`LogView`) and how far it is durable and committed."""

from __future__ import annotations

from typing import Protocol

from moldau.raft.types import UNKNOWN_OFFSET, OffsetAndEpoch


class LogView(Protocol):
    """Read access to the log, from memory. Appended records count whether or not they are synced."""

    @property
    def start_offset(self) -> int: ...

    @property
    def end(self) -> OffsetAndEpoch:
        """The log's end; the latest snapshot's if the log is empty, or (0, 0) without one."""
        ...

    @property
    def snapshots(self) -> tuple[OffsetAndEpoch, ...]:
        """Complete snapshots, oldest first."""
        ...

    def end_of_epoch(self, epoch: int) -> OffsetAndEpoch:
        """Return the end of the largest epoch that is not above `epoch`: that epoch and its end offset."""
        ...


class LocalLog:
    """Tracks the durable end, the high watermark and the driver's pending write of one log."""

    def __init__(self, log: LogView) -> None:
        self.view = log
        #: Records before this offset are synced.
        self.durable_end = log.end.offset
        #: Unknown again for each new leader, until it commits a record of its own epoch.
        self.high_watermark = UNKNOWN_OFFSET
        #: Records before this offset are committed for certain. Snapshots contain committed records only.
        self.committed = max([log.start_offset, *(snapshot.offset for snapshot in log.snapshots)])
        #: The driver is performing a `FollowerAction`.
        self.has_pending_write = False

    @property
    def can_fetch(self) -> bool:
        """Whether every appended record is synced.

        The leader counts records before the offset of a fetch as durable here, also those that were written
        in another role.
        """
        return not self.has_pending_write and self.view.end.offset <= self.durable_end

    def advance_high_watermark(self, high_watermark: int) -> None:
        self.high_watermark = max(self.high_watermark, high_watermark)
        self.committed = max(self.committed, high_watermark)
