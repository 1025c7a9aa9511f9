"""Kafka's `.snapshot` files: the state of producers at the offset that names the file.

Version 1: int16 version, uint32 CRC-32C of all that follows, int32 count, then 46 bytes per producer. Only
the last batch of each producer is stored.
"""

from __future__ import annotations

import logging
from bisect import bisect_left, insort
from collections.abc import Collection, Iterable
from struct import Struct
from typing import NamedTuple

from fastcrc.crc32 import iscsi as crc32c

from moldau.storage.disk.disk import Disk

SUFFIX = ".snapshot"

logger = logging.getLogger(__name__)

_VERSION = 1
_HEAD = Struct(">hI")
_COUNT = Struct(">i")
_ENTRY = Struct(">qhiqiqiq")


class CorruptSnapshot(ValueError):
    """The file is damaged."""


class SnapshotEntry(NamedTuple):
    """`last_offset` is -1 without a batch, `transaction_first_offset` without an open transaction."""

    producer_id: int
    epoch: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int
    coordinator_epoch: int
    transaction_first_offset: int


def encode_snapshot(entries: Iterable[SnapshotEntry]) -> bytes:
    packed = [_ENTRY.pack(*entry) for entry in entries]
    body = _COUNT.pack(len(packed)) + b"".join(packed)
    return _HEAD.pack(_VERSION, crc32c(body)) + body


def decode_snapshot(data: bytes) -> list[SnapshotEntry]:
    if len(data) < _HEAD.size + _COUNT.size:
        raise CorruptSnapshot(f"{len(data)} bytes are too short for a snapshot")
    version, crc = _HEAD.unpack_from(data)
    if version != _VERSION:
        raise CorruptSnapshot(f"unknown version {version}")
    body = data[_HEAD.size :]
    if crc32c(body) != crc:
        raise CorruptSnapshot("the checksum does not match")
    (count,) = _COUNT.unpack_from(body)
    entries = body[_COUNT.size :]
    if count < 0 or len(entries) != count * _ENTRY.size:
        raise CorruptSnapshot(f"expected {count} producers, but found {len(entries)} bytes")
    return [SnapshotEntry._make(fields) for fields in _ENTRY.iter_unpack(entries)]


def snapshot_path(directory: str, offset: int) -> str:
    return f"{directory}/{offset:020d}{SUFFIX}"


def snapshot_offset(name: str) -> int | None:
    """Parse the offset in the name of a snapshot file; None for any other file."""
    digits = name.removesuffix(SUFFIX)
    return int(digits) if name.endswith(SUFFIX) and len(digits) == 20 and digits.isdecimal() else None


class ProducerSnapshots:
    """The snapshot files of one log, by offset."""

    __slots__ = ("_directory", "_disk", "_offsets", "_unsynced")

    def __init__(self, disk: Disk, directory: str, names: Iterable[str]) -> None:
        self._disk = disk
        self._directory = directory
        self._offsets = sorted(offset for name in names if (offset := snapshot_offset(name)) is not None)
        self._unsynced: list[int] = []

    @property
    def latest(self) -> int | None:
        return self._offsets[-1] if self._offsets else None

    @property
    def offsets(self) -> tuple[int, ...]:
        return tuple(self._offsets)

    def write(self, offset: int, entries: Iterable[SnapshotEntry], *, sync: bool) -> None:
        """Write the file; without `sync` it is synced by the next call of `sync()`."""
        file = self._disk.open(snapshot_path(self._directory, offset), create=True)
        data = encode_snapshot(entries)
        file.pwrite((data,), 0)
        file.truncate(len(data))
        if sync:
            file.sync()
        else:
            self._unsynced.append(offset)
        file.close()
        if offset not in self._offsets:
            insort(self._offsets, offset)

    def sync(self) -> None:
        """Sync the files that were written without it. Blocking."""
        while self._unsynced:
            offset = self._unsynced.pop()
            if offset in self._offsets:
                file = self._disk.open(snapshot_path(self._directory, offset))
                file.sync()
                file.close()

    def load(self, offset: int) -> list[SnapshotEntry] | None:
        """Load the snapshot at an offset; None if there is none or it is damaged."""
        if offset not in self._offsets:
            return None
        try:
            return decode_snapshot(self._disk.read_bytes(snapshot_path(self._directory, offset)))
        except (CorruptSnapshot, FileNotFoundError):
            return None

    def load_latest(self) -> tuple[int, list[SnapshotEntry]] | None:
        """Load the newest readable snapshot; remove damaged ones."""
        while self._offsets:
            offset = self._offsets[-1]
            path = snapshot_path(self._directory, offset)
            try:
                return offset, decode_snapshot(self._disk.read_bytes(path))
            except (CorruptSnapshot, FileNotFoundError) as error:
                logger.warning("Removing the damaged producer snapshot %s: %s", path, error)
                self.remove(offset)
        return None

    def remove(self, offset: int) -> None:
        self._offsets.remove(offset)
        self._disk.remove(snapshot_path(self._directory, offset))

    def remove_outside(self, start: int, end: int) -> None:
        """Remove the snapshots that are not in `(start, end]`."""
        for offset in [offset for offset in self._offsets if not start < offset <= end]:
            self.remove(offset)

    def remove_stray(self, base_offsets: Collection[int]) -> None:
        """Keep the snapshots of segments, and the newest of the others if it is after all of them."""
        stray = [offset for offset in self._offsets if offset not in base_offsets]
        if stray and stray[-1] >= max(base_offsets, default=0):
            stray.pop()
        for offset in stray:
            self.remove(offset)

    def mark_deleted(self, offset: int, suffix: str) -> str | None:
        """Rename a snapshot for later deletion; return its new path."""
        place = bisect_left(self._offsets, offset)
        if place == len(self._offsets) or self._offsets[place] != offset:
            return None
        del self._offsets[place]
        path = snapshot_path(self._directory, offset)
        if not self._disk.exists(path):
            return None
        self._disk.rename(path, path + suffix)
        return path + suffix

    def move(self, directory: str) -> None:
        """Follow the log's directory, which was renamed."""
        self._directory = directory
