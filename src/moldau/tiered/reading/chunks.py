"""Ranged reads of remote segments in aligned chunks, a few of which stay in memory.

A consumer reads a segment in order, in pieces smaller than a chunk: most of its reads need no request. Two
readers of one chunk share a request. The bound is small, because old data is rarely read twice.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable

from moldau.base.ids import Uuid
from moldau.tiered.state.segments import RemoteSegment
from moldau.tiered.stores.interface import RemoteStore, RemoteStoreError

CHUNK_BYTES = 4 * 1024 * 1024
_MAX_BYTES = 64 * 1024 * 1024

_Key = tuple[Uuid, int]


class ChunkCache:
    """Thread-safe. `on_read` is called with the bytes of each request to the store."""

    def __init__(
        self,
        store: RemoteStore,
        on_read: Callable[[RemoteSegment, int], None] = lambda segment, size: None,
        *,
        chunk_bytes: int = CHUNK_BYTES,
        max_bytes: int = _MAX_BYTES,
    ) -> None:
        self._store = store
        self._on_read = on_read
        self.chunk_bytes = chunk_bytes
        self._max_bytes = max_bytes
        self._chunks: OrderedDict[_Key, bytes] = OrderedDict()
        self._total = 0
        self._lock = threading.Lock()
        self._loading: dict[_Key, threading.Lock] = {}

    def read(self, segment: RemoteSegment, position: int, size: int) -> memoryview:
        """Return bytes of a segment, fewer than `size` only at its end."""
        end = min(position + size, segment.size)
        if end <= position:
            return memoryview(b"")
        first, last = position // self.chunk_bytes, (end - 1) // self.chunk_bytes
        parts = []
        for number in range(first, last + 1):
            start = number * self.chunk_bytes
            chunk = memoryview(self._chunk(segment, number))
            parts.append(chunk[max(0, position - start) : end - start])
        # Only the part that is needed is copied: the event loop waits meanwhile.
        return parts[0] if len(parts) == 1 else memoryview(b"".join(parts))

    def has(self, segment: RemoteSegment, position: int) -> bool:
        """Return whether the chunk at a position is in memory, or past the end of the segment."""
        if position >= segment.size:
            return True
        with self._lock:
            return (segment.id, position // self.chunk_bytes) in self._chunks

    def discard(self, segment: RemoteSegment) -> None:
        """Forget the chunks of a segment, which is deleted or has returned damaged bytes."""
        with self._lock:
            for key in [key for key in self._chunks if key[0] == segment.id]:
                self._total -= len(self._chunks.pop(key))

    def _chunk(self, segment: RemoteSegment, number: int) -> bytes:
        key = (segment.id, number)
        with self._lock:
            found = self._chunks.get(key)
            if found is not None:
                self._chunks.move_to_end(key)
                return found
            lock = self._loading.setdefault(key, threading.Lock())
        try:
            with lock:
                with self._lock:
                    found = self._chunks.get(key)
                return found if found is not None else self._load(segment, number)
        finally:
            with self._lock:
                self._loading.pop(key, None)

    def _load(self, segment: RemoteSegment, number: int) -> bytes:
        start = number * self.chunk_bytes
        wanted = min(self.chunk_bytes, segment.size - start)
        data = self._store.read(segment, start, wanted)
        self._on_read(segment, len(data))
        if len(data) != wanted:
            raise RemoteStoreError(
                f"{segment} is damaged in the remote store: {len(data)} of {wanted} bytes at position {start}"
            )
        with self._lock:
            self._chunks[segment.id, number] = data
            self._total += len(data)
            while self._total > self._max_bytes and len(self._chunks) > 1:
                _, removed = self._chunks.popitem(last=False)
                self._total -= len(removed)
        return data
