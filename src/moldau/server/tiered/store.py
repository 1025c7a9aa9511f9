"""Calls to the remote store from the event loop: in threads of their own, bounded by kind, and counted.

Copies, deletions and reads have separate pools, so that none of them delays another when the store is slow.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from moldau.base.pool import Pool
from moldau.server.tiered.settings import TieredSettings
from moldau.server.tiered.slots import Slots
from moldau.server.tiered.traffic import TopicsRemoteTraffic
from moldau.storage.disk.disk import Disk
from moldau.tiered.reading.chunks import ChunkCache
from moldau.tiered.reading.index_cache import IndexCache
from moldau.tiered.reading.reader import RemoteReader
from moldau.tiered.state.segments import RemoteSegment
from moldau.tiered.stores.interface import RemoteStore, RemoteStoreError, SegmentSource, StoredSegment
from moldau.tiered.stores.plugin import StorePlugin

P = ParamSpec("P")
R = TypeVar("R")

#: How long a node that stops waits for calls to the store.
_CLOSE_SECONDS = 5.0

MakePool = Callable[[int, str], Pool]


_COPIERS = "remote.log.manager.copier.thread.pool.size"
_DELETERS = "remote.log.manager.expiration.thread.pool.size"
_FOLLOWERS = "remote.log.manager.follower.thread.pool.size"
_READERS = "remote.log.reader.threads"


class CustomMetadataTooLarge(RemoteStoreError):
    """The store has copied a segment, and returned more metadata of its own than is allowed."""

    def __init__(self, segment: RemoteSegment, limit: int) -> None:
        size = len(segment.custom_metadata or b"")
        super().__init__(
            f"the store returned {size} bytes of metadata for {segment}, more than "
            f"remote.log.metadata.custom.metadata.max.bytes={limit}; nothing more of this partition is "
            "copied until it has another leader or the broker is restarted"
        )
        self.segment = segment


class StoreCalls:
    """`copiers`, `deleters` and `followers` bound how many partitions do this at the same time."""

    def __init__(
        self,
        store: RemoteStore,
        settings: TieredSettings,
        make_pool: MakePool,
        disk: Disk,
        cache_folder: str,
        on_fetched: Callable[[RemoteSegment, int], None],
    ) -> None:
        self._settings = settings
        self._store = StorePlugin(store)
        self.traffic = TopicsRemoteTraffic()
        self.copiers = Slots(lambda: settings.integer(_COPIERS))
        self.deleters = Slots(lambda: settings.integer(_DELETERS))
        self.followers = Slots(lambda: settings.integer(_FOLLOWERS))
        self._copy_pool = make_pool(settings.integer(_COPIERS), "moldau-remote-copy")
        self._delete_pool = make_pool(settings.integer(_DELETERS), "moldau-remote-delete")
        self._read_pool = make_pool(settings.integer(_READERS), "moldau-remote-read")
        cache_bytes = settings.integer("remote.log.index.file.cache.total.size.bytes")
        self.indexes = IndexCache(self._store, disk, cache_folder, cache_bytes)
        self._chunks = ChunkCache(self._store, on_fetched)
        self.reader = RemoteReader(self.indexes, self._chunks)
        self.pending_reads = 0

    @property
    def plugin(self) -> RemoteStore:
        """The remote store as the configuration names it."""
        return self._store.store

    def apply_settings(self) -> None:
        """Apply dynamic configs."""
        settings = self._settings
        self.indexes.max_bytes = settings.integer("remote.log.index.file.cache.total.size.bytes")
        self._copy_pool.resize(settings.integer(_COPIERS))
        self._delete_pool.resize(settings.integer(_DELETERS))
        self._read_pool.resize(settings.integer(_READERS))
        for slots in (self.copiers, self.deleters, self.followers):
            slots.wake()

    async def copy(self, segment: RemoteSegment, source: SegmentSource) -> bytes | None:
        traffic = self.traffic.of(segment.partition_id.topic)
        traffic.copy_requests += 1
        limit = self._settings.integer("remote.log.metadata.custom.metadata.max.bytes")
        try:
            custom = await self._copy_pool.run(self._store.copy, segment, source)
            if custom is not None and len(custom) > limit:
                raise CustomMetadataTooLarge(segment._replace(custom_metadata=custom), limit)
        except RemoteStoreError:
            traffic.copy_errors += 1
            raise
        traffic.copy_bytes += segment.size
        return custom

    async def delete(self, segment: RemoteSegment) -> None:
        traffic = self.traffic.of(segment.partition_id.topic)
        traffic.delete_requests += 1
        try:
            await self._delete_pool.run(self._store.delete, segment)
        except RemoteStoreError:
            traffic.delete_errors += 1
            raise
        await self._delete_pool.run(self.reader.discard, segment)

    async def stored(self) -> list[StoredSegment] | None:
        """List what the store has; None if it cannot tell."""
        return await self._delete_pool.run(self._store.segments)

    @property
    def may_read(self) -> bool:
        """Whether another read may wait for a thread."""
        return self.pending_reads < self._settings.integer("remote.log.reader.max.pending.tasks")

    async def read(self, fn: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run a call of `reader` in a thread for reads."""
        self.pending_reads += 1
        try:
            return await self._read_pool.run(fn, *args, **kwargs)
        finally:
            self.pending_reads -= 1

    async def close(self) -> None:
        loop = asyncio.get_running_loop()
        pools = (self._copy_pool, self._delete_pool, self._read_pool)
        # A thread may be waiting for the store.
        closing = [loop.run_in_executor(None, pool.close) for pool in pools]
        await asyncio.wait(closing, timeout=_CLOSE_SECONDS)
        self._store.close()
