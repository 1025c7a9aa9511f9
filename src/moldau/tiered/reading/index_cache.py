"""Copies of the indexes of remote segments on the local disk, bounded by their size.

The least recently used copies are removed first. The folder is emptied when a node starts: a copy costs one
request to the store.
"""

from __future__ import annotations

import threading
from collections import OrderedDict

from moldau.base.ids import Uuid, format_uuid
from moldau.storage.disk.disk import Disk
from moldau.tiered.state.segments import RemoteSegment
from moldau.tiered.stores.interface import RemoteStore, RemoteStoreError, SegmentIndexes

#: Kafka's name for the folder, in the first log directory.
FOLDER = "remote-log-index-cache"


class IndexCache:
    """Thread-safe."""

    def __init__(self, store: RemoteStore, disk: Disk, folder: str, max_bytes: int) -> None:
        self._store = store
        self._disk = disk
        self._folder = folder
        self.max_bytes = max_bytes
        self._sizes: OrderedDict[Uuid, int] = OrderedDict()
        self._total = 0
        self._lock = threading.Lock()
        self._loading: dict[Uuid, threading.Lock] = {}

    @property
    def total_bytes(self) -> int:
        return self._total

    def prepare(self) -> None:
        """Empty the folder."""
        if self._disk.is_dir(self._folder):
            self._disk.remove_tree(self._folder)
        self._disk.makedirs(self._folder)

    def get(self, segment: RemoteSegment) -> SegmentIndexes:
        """Return the indexes of a segment, from the store if there is no copy."""
        with self._lock:
            lock = self._loading.setdefault(segment.id, threading.Lock())
        try:
            with lock:
                return self._cached(segment) or self._load(segment)
        finally:
            with self._lock:
                self._loading.pop(segment.id, None)

    def _cached(self, segment: RemoteSegment) -> SegmentIndexes | None:
        with self._lock:
            if segment.id not in self._sizes:
                return None
            self._sizes.move_to_end(segment.id)
        try:
            return SegmentIndexes.unpack(self._disk.read_bytes(self._path(segment.id)))
        except (OSError, RemoteStoreError):
            self.discard(segment.id)
            return None

    def _load(self, segment: RemoteSegment) -> SegmentIndexes:
        indexes = self._store.read_indexes(segment)
        data = indexes.pack()
        if len(data) <= self.max_bytes:
            try:
                self._write(self._path(segment.id), data)
            except OSError:
                # Without room for a copy, the indexes are requested again.
                return indexes
            self._add(segment.id, len(data))
        return indexes

    def _write(self, path: str, data: bytes) -> None:
        """Write a file, which need not survive the process."""
        partial = f"{path}.partial"
        file = self._disk.open(partial, create=True)
        file.truncate(0)
        file.pwrite((data,), 0)
        self._disk.rename(partial, path)

    def _add(self, segment_id: Uuid, size: int) -> None:
        removed = []
        with self._lock:
            self._total += size - self._sizes.pop(segment_id, 0)
            self._sizes[segment_id] = size
            while self._total > self.max_bytes and len(self._sizes) > 1:
                oldest, freed = self._sizes.popitem(last=False)
                self._total -= freed
                removed.append(oldest)
        for each in removed:
            self._remove(each)

    def discard(self, segment_id: Uuid) -> None:
        """Remove a copy: the segment is deleted, or the copy is damaged."""
        with self._lock:
            size = self._sizes.pop(segment_id, None)
            if size is None:
                return
            self._total -= size
        self._remove(segment_id)

    def _remove(self, segment_id: Uuid) -> None:
        try:
            self._disk.remove(self._path(segment_id))
        except OSError:
            return

    def _path(self, segment_id: Uuid) -> str:
        # Apache Kafka does not start if it cannot read an id from the name, after the first underscore.
        return f"{self._folder}/0_{format_uuid(segment_id)}.indexes"
