"""Deleting what arrived in the remote store after it had been deleted there.

A store may complete an upload that it has reported as failed, for example after a timeout, and after the
broker has deleted the segment. No broker knows of such an object any more. So the leader of a partition of
the metadata topic lists the store now and then, and deletes the segments whose deletion is recorded. Nothing
else is deleted: an object without such a record may belong to another cluster, or to metadata that was lost.
"""

from __future__ import annotations

import asyncio
import logging

from moldau.base.clock import Clock
from moldau.base.json_log import event
from moldau.server.tiered.metadata import RemoteLogMetadata
from moldau.server.tiered.metadata_feed import MetadataFeed
from moldau.server.tiered.settings import TieredSettings
from moldau.server.tiered.store import StoreCalls
from moldau.tiered.state.metadata_partition import metadata_partition
from moldau.tiered.stores.interface import RemoteStoreError, StoredSegment

logger = logging.getLogger(__name__)

#: The store is listed once per so many task intervals: every hour by default.
INTERVALS = 120


class Orphans:
    def __init__(
        self, metadata: RemoteLogMetadata, store: StoreCalls, settings: TieredSettings, clock: Clock
    ) -> None:
        self._metadata = metadata
        self._store = store
        self._settings = settings
        self._clock = clock
        self._next = clock.monotonic() + self._interval
        self._is_running = False

    @property
    def _interval(self) -> float:
        return INTERVALS * self._settings.integer("remote.log.manager.task.interval.ms") / 1000

    def start(self, tasks: set[asyncio.Task[None]]) -> None:
        """Start a sweep if it is due."""
        now = self._clock.monotonic()
        if self._is_running or now < self._next:
            return
        self._next = now + self._interval
        if any(feed.has_deletions for feed in self._led().values()):
            self._is_running = True
            task = asyncio.create_task(self._run())
            tasks.add(task)
            task.add_done_callback(tasks.discard)

    async def _run(self) -> None:
        try:
            await self.sweep()
        except RemoteStoreError as error:
            logger.warning(
                "the remote store is searched for deleted segments later: %s",
                error,
                extra=event("tiered.search_failed"),
            )
        finally:
            self._is_running = False

    def _led(self) -> dict[int, MetadataFeed]:
        """Return the feeds that know all deletions of their partitions."""
        topic = self._metadata.topic
        return {
            feed.index: feed for feed in self._metadata.feeds if feed.is_loaded and topic.leads(feed.index)
        }

    async def sweep(self) -> None:
        """Delete every segment in the store whose deletion is recorded."""
        found = await self._store.stored()
        for segment in found or ():
            if self._is_orphan(segment):
                await self._store.delete(segment.as_remote())
                logger.info(
                    "%s arrived after its deletion and is deleted again",
                    segment.as_remote(),
                    extra=event("tiered.segment_deleted", segment=str(segment.as_remote())),
                )

    def _is_orphan(self, segment: StoredSegment) -> bool:
        count = self._metadata.topic.partitions()
        feed = self._led().get(metadata_partition(segment.partition_id, count)) if count else None
        return feed is not None and feed.has_deleted(segment.id)
