"""Deleting the remote segments of topics that no longer exist, or are no longer tiered.

The leader of the partition of the metadata topic does this, whichever broker led the user partition: so it
does not matter which brokers fail while a topic is deleted. A topic id that was never in this broker's
metadata may belong to a topic so new that the metadata is behind, so its segments must be old as well.
"""

from __future__ import annotations

import asyncio
import logging

from moldau.base.ids import TopicId
from moldau.base.json_log import event
from moldau.server.services import NodeServices
from moldau.server.tiered.deletion import RemoteDeletion
from moldau.server.tiered.metadata import RemoteLogMetadata
from moldau.server.tiered.metadata_feed import MetadataFeed
from moldau.tiered.state.segments import PartitionId, RemoteSegment

logger = logging.getLogger(__name__)

_UNKNOWN_AGE_MS = 600_000
_MAX_REMEMBERED = 10_000


class Leftovers:
    def __init__(self, services: NodeServices, metadata: RemoteLogMetadata, deletion: RemoteDeletion) -> None:
        self._services = services
        self._metadata = metadata
        self._deletion = deletion
        self._deleted: dict[TopicId, None] = {}
        self._running: set[int] = set()

    def deleted(self, topic_id: TopicId) -> None:
        """Remember that the metadata contained a topic and contains it no more."""
        self._deleted[topic_id] = None
        while len(self._deleted) > _MAX_REMEMBERED:
            self._deleted.pop(next(iter(self._deleted)))

    def start(self, tasks: set[asyncio.Task[None]]) -> None:
        """Start the deletions of the metadata partitions that this broker leads."""
        for feed in self._metadata.feeds:
            if (
                feed.index in self._running
                or not feed.is_loaded
                or not self._metadata.topic.leads(feed.index)
            ):
                continue
            left = self._left(feed)
            if left:
                self._running.add(feed.index)
                task = asyncio.create_task(self._delete(feed, left))
                tasks.add(task)
                task.add_done_callback(tasks.discard)

    def _left(self, feed: MetadataFeed) -> list[RemoteSegment]:
        now_ms = self._services.clock.time_ms()
        return [
            segment
            for partition_id, remote in feed.logs
            if len(remote) and not self._is_tiered(partition_id)
            for segment in remote.segments
            if self._is_deletable(partition_id, segment, now_ms)
        ]

    def _is_tiered(self, partition_id: PartitionId) -> bool:
        image = self._services.metadata.image
        topic = image.topics.by_id.get(partition_id.topic_id)
        if topic is None:
            return False
        config = image.topic_config(topic.name)
        if config.get("remote.storage.enable", "false").lower() == "true":
            return True
        # Without remote.log.delete.on.disable, nothing is deleted: the topic may be tiered again.
        return config.get("remote.log.delete.on.disable", "false").lower() != "true"

    def _is_deletable(self, partition_id: PartitionId, segment: RemoteSegment, now_ms: int) -> bool:
        topic_id = partition_id.topic_id
        if topic_id in self._deleted or topic_id in self._services.metadata.image.topics.by_id:
            return True
        return now_ms - segment.event_timestamp_ms >= _UNKNOWN_AGE_MS

    async def _delete(self, feed: MetadataFeed, segments: list[RemoteSegment]) -> None:
        """Delete segments, also if some cannot be deleted."""
        errors: dict[PartitionId, Exception] = {}
        try:
            for segment in segments:
                if not self._metadata.topic.leads(feed.index):
                    break
                if self._is_tiered(segment.partition_id):
                    continue
                error = await self._deletion.attempt(segment)
                if error is not None:
                    errors.setdefault(segment.partition_id, error)
        finally:
            self._running.discard(feed.index)
        for partition_id, error in errors.items():
            logger.warning(
                "the remote segments of %s are deleted later: %s",
                partition_id,
                error,
                extra=event("tiered.delete_failed", partition=str(partition_id)),
            )
