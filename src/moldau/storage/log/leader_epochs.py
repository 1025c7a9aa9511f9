"""The start offset of each leader epoch in a log, stored in Kafka's `leader-epoch-checkpoint` file.

The file is text: version 0, the number of entries, then `<epoch> <start offset>` per line. A flush writes it
before the recovery point moves past a new entry; recovery restores from the batches what a crash loses. So a
new epoch costs nothing on the hot path.
"""

from __future__ import annotations

import logging
from bisect import bisect_right
from typing import NamedTuple

from moldau.storage.disk.disk import Disk

FILE_NAME = "leader-epoch-checkpoint"
UNDEFINED = -1

logger = logging.getLogger(__name__)


class EpochEntry(NamedTuple):
    epoch: int
    start_offset: int


class LeaderEpochs:
    """Entries ascend in both fields. `latest` is the newest epoch, -1 if there is none."""

    __slots__ = ("_changed", "_directory", "_disk", "_entries", "latest")

    def __init__(self, disk: Disk, directory: str) -> None:
        self._disk = disk
        self._directory = directory
        self._entries: list[EpochEntry] = []
        self._changed = False
        self.latest = UNDEFINED

    @classmethod
    def load(cls, disk: Disk, directory: str) -> LeaderEpochs:
        """Read the file; a damaged one is ignored, and recovery and the leader supply the epochs."""
        epochs = cls(disk, directory)
        path = f"{directory}/{FILE_NAME}"
        try:
            data = disk.read_bytes(path)
        except FileNotFoundError:
            epochs._changed = True
            return epochs
        try:
            entries = parse_leader_epochs(data)
        except ValueError as error:
            logger.warning("%s is damaged (%s), leader epochs are taken from the log", path, error)
            epochs._changed = True
            return epochs
        for entry in entries:
            epochs.assign(entry.epoch, entry.start_offset)
        epochs._changed = False
        return epochs

    @property
    def is_saved(self) -> bool:
        """Whether the file has all entries."""
        return not self._changed

    @property
    def entries(self) -> tuple[EpochEntry, ...]:
        return tuple(self._entries)

    def assign(self, epoch: int, start_offset: int) -> None:
        """Add an epoch that begins at `start_offset`, unless it is known; remove contradicting entries."""
        entries = self._entries
        if entries and epoch == entries[-1].epoch and start_offset >= entries[-1].start_offset:
            return
        while entries and (entries[-1].epoch >= epoch or entries[-1].start_offset >= start_offset):
            removed = entries.pop()
            if removed.start_offset != start_offset:
                logger.warning(
                    "%s: epoch %d at %d contradicts %s", self._directory, epoch, start_offset, removed
                )
        entries.append(EpochEntry(epoch, start_offset))
        self._touch()

    def end_offset_for(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """The largest known epoch up to `epoch` and its end offset; (-1, -1) if unknown."""
        if epoch == UNDEFINED:
            return UNDEFINED, UNDEFINED
        if epoch == self.latest:
            return epoch, log_end_offset
        higher = bisect_right(self._entries, epoch, key=lambda entry: entry.epoch)
        if higher == len(self._entries):
            return UNDEFINED, UNDEFINED
        end = self._entries[higher].start_offset
        return (epoch if higher == 0 else self._entries[higher - 1].epoch), end

    def epoch_for(self, offset: int) -> int:
        """The epoch of the record at an offset; -1 if unknown."""
        number = bisect_right(self._entries, offset, key=lambda entry: entry.start_offset)
        return self._entries[number - 1].epoch if number else UNDEFINED

    def truncate_from_end(self, offset: int) -> None:
        """Remove the epochs that begin at or after the new log end `offset`."""
        before = len(self._entries)
        while self._entries and self._entries[-1].start_offset >= offset:
            self._entries.pop()
        if len(self._entries) != before:
            self._touch()

    def truncate_from_start(self, offset: int) -> None:
        """Remove the epochs before the new log start `offset`; the one in effect there starts there."""
        number = bisect_right(self._entries, offset, key=lambda entry: entry.start_offset)
        if number and self._entries[number - 1].start_offset != offset:
            self._entries[:number] = [EpochEntry(self._entries[number - 1].epoch, offset)]
            self._touch()
        elif number > 1:
            del self._entries[: number - 1]
            self._touch()

    def clear(self) -> None:
        self._entries.clear()
        self._touch()

    def move(self, directory: str) -> None:
        """Follow the log's directory, which was renamed."""
        self._directory = directory

    def write(self) -> None:
        """Write the file if the entries have changed. Blocking."""
        if not self._changed:
            return
        self._changed = False
        lines = ["0", str(len(self._entries)), *(f"{epoch} {start}" for epoch, start in self._entries), ""]
        try:
            self._disk.write_atomic(f"{self._directory}/{FILE_NAME}", "\n".join(lines).encode())
        except OSError:
            self._changed = True
            raise

    def _touch(self) -> None:
        self.latest = self._entries[-1].epoch if self._entries else UNDEFINED
        self._changed = True


def parse_leader_epochs(data: bytes) -> list[EpochEntry]:
    """Parse a checkpoint file; `ValueError` if it is damaged."""
    lines = data.decode("ascii").split("\n")
    if lines == [""]:
        return []
    if lines[0].strip() != "0":
        raise ValueError(f"unknown version {lines[0]!r}")
    count = int(lines[1])
    found = [line.split() for line in lines[2:] if line.strip()]
    if count < 0 or len(found) != count:
        raise ValueError(f"expected {count} entries, but found {len(found)}")
    return [EpochEntry(int(epoch), int(start)) for epoch, start in found]
