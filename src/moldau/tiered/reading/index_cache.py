"""Copies of the indexes of remote segments on the local disk, bounded by their size.

The least recently used copies are removed first. The folder is emptied when a node starts: a copy costs one
request to the store.
"""

from __future__ import annotations

import os
import shutil
import threading
from collections import OrderedDict
from pathlib import Path

from moldau.base.ids import Uuid, format_uuid
from moldau.tiered.state.segments import RemoteSegment
from moldau.tiered.stores.interface import RemoteStore, RemoteStoreError, SegmentIndexes

#: Kafka's name for the folder, in the first log directory.
FOLDER = "remote-log-index-cache"


class IndexCache:
    """Thread-safe."""

    def __init__(self, store: RemoteStore, folder: str, max_bytes: int) -> None:
        self._store = store
        self._folder = Path(folder)
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
        shutil.rmtree(self._folder, ignore_errors=True)
        self._folder.mkdir(parents=True, exist_ok=True)

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
            return SegmentIndexes.unpack(self._path(segment.id).read_bytes())
        except (OSError, RemoteStoreError):
            self.discard(segment.id)
            return None

    def _load(self, segment: RemoteSegment) -> SegmentIndexes:
        indexes = self._store.read_indexes(segment)
        data = indexes.pack()
        if len(data) <= self.max_bytes:
            try:
                partial = self._path(segment.id).with_suffix(".partial")
                partial.write_bytes(data)
                partial.replace(self._path(segment.id))
            except OSError:
                # Without room for a copy, the indexes are requested again.
                return indexes
            self._add(segment.id, len(data))
        return indexes

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
            os.unlink(self._path(segment_id))
        except OSError:
            return

    def _path(self, segment_id: Uuid) -> Path:
        return self._folder / f"{format_uuid(segment_id)}.indexes"
