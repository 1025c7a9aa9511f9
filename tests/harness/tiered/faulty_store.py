"""A remote store of one's own: the folder store, with faults that a test switches on through a file."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

from moldau.tiered.state.segments import RemoteSegment
from moldau.tiered.stores.folder import FolderStore
from moldau.tiered.stores.interface import RemoteStoreError, SegmentIndexes, SegmentSource

COPY, READ, DELETE, DAMAGED = "copy", "read", "delete", "damaged"
#: Copies, or reads, do not end before the fault does.
HANG, HANG_READ = "hang", "hang-read"
#: A mistake in the plug-in: every call raises an exception that has nothing to do with stores.
BUG = "bug"
#: The plug-in returns more metadata of its own than is allowed.
METADATA = "metadata"
#: This file is in the folder while reads hang.
HANGING = "hanging"


class FaultyStore(FolderStore):
    """The file `faults` in the folder contains the names of the present faults."""

    def __init__(self, configs: Mapping[str, str]) -> None:
        super().__init__(configs)
        self._faults = Path(configs["dir"]) / "faults"
        self.deleted: list[RemoteSegment] = []

    def _check(self, fault: str) -> None:
        if self._has(BUG):
            raise ZeroDivisionError("a mistake in the store")
        if self._has(fault):
            raise RemoteStoreError(f"503 Slow Down: {fault} is not possible now")

    def _has(self, fault: str) -> bool:
        return self._faults.exists() and fault in self._faults.read_text().split()

    def copy(self, segment: RemoteSegment, source: SegmentSource) -> bytes:
        custom = super().copy(segment, source)
        # After everything was uploaded: the store has an object that nobody confirmed.
        self._check(COPY)
        while self._has(HANG):
            time.sleep(0.05)
        return b"x" * 1000 if self._has(METADATA) else custom

    def read(self, segment: RemoteSegment, position: int, size: int) -> bytes:
        self._check(READ)
        while self._has(HANG_READ):
            (self._faults.parent / HANGING).touch()
            time.sleep(0.05)
        (self._faults.parent / HANGING).unlink(missing_ok=True)
        data = super().read(segment, position, size)
        if self._has(DAMAGED):
            middle = len(data) // 2
            return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]
        return data

    def read_indexes(self, segment: RemoteSegment) -> SegmentIndexes:
        self._check(READ)
        return super().read_indexes(segment)

    def delete(self, segment: RemoteSegment) -> None:
        self._check(DELETE)
        self._check(of_topic(DELETE, segment.partition_id.topic))
        self.deleted.append(segment)
        super().delete(segment)


def of_topic(fault: str, topic: str) -> str:
    """Return the name of a fault that only the segments of a topic have."""
    return f"{fault}:{topic}"


def set_faults(folder: Path, *faults: str) -> None:
    (folder / "faults").write_text(" ".join(faults))
