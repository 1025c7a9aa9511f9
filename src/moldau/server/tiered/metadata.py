"""Remote log metadata of all partitions that this broker hosts: write records, and look up remote logs.

A record is written to the partition of `__remote_log_metadata` of its user partition, and counts as written
when this broker has replayed it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from moldau.base.clock import Clock
from moldau.base.errors import ErrorCode, KafkaError
from moldau.protocol.schema import Message
from moldau.protocol.stored.remote_log import encode_remote_log_record
from moldau.server.tiered.metadata_feed import MetadataFeed
from moldau.server.tiered.metadata_topic import NAME, MetadataTopic
from moldau.server.tiered.settings import TieredSettings
from moldau.tiered.state.metadata_partition import metadata_partition
from moldau.tiered.state.remote_log import RemoteLog
from moldau.tiered.state.segments import PartitionId, RemoteSegment, SegmentState, update_record


class RemoteLogMetadata:
    def __init__(self, topic: MetadataTopic, settings: TieredSettings, clock: Clock, broker_id: int) -> None:
        self.topic = topic
        self._settings = settings
        self._clock = clock
        self._broker_id = broker_id
        self._feeds: dict[int, MetadataFeed] = {}
        self._wanted: set[PartitionId] = set()

    @property
    def feeds(self) -> list[MetadataFeed]:
        return list(self._feeds.values())

    def want(self, partitions: Iterable[PartitionId]) -> None:
        """Follow exactly these user partitions."""
        wanted = set(partitions)
        for dropped in self._wanted - wanted:
            feed = self._feed_of(dropped)
            if feed is not None:
                feed.drop(dropped)
        self._wanted = wanted

    async def refresh(self) -> None:
        """Open and close feeds as the wanted partitions and the leaders of the topic require."""
        self.topic.apply()
        count = self.topic.partitions()
        if count == 0:
            return
        for partition_id in self._wanted:
            self._feed(metadata_partition(partition_id, count)).want(partition_id)
        for index in range(count):
            leads = self.topic.leads(index)
            if leads:
                self._feed(index).set_complete(True)
            elif (feed := self._feeds.get(index)) is not None:
                feed.set_complete(False)
        unused = [index for index, feed in self._feeds.items() if not feed.is_used]
        await asyncio.gather(*(self._feeds.pop(index).close() for index in unused))

    def _feed(self, index: int) -> MetadataFeed:
        feed = self._feeds.get(index)
        if feed is None:
            feed = self._feeds[index] = MetadataFeed(index, self.topic, self._clock)
        return feed

    def _feed_of(self, partition_id: PartitionId) -> MetadataFeed | None:
        count = self.topic.partitions()
        return self._feeds.get(metadata_partition(partition_id, count)) if count else None

    def log(self, partition_id: PartitionId) -> RemoteLog | None:
        """Return the remote log of a partition; None while it is loading."""
        feed = self._feed_of(partition_id)
        return None if feed is None else feed.log(partition_id)

    def loaded(self, partition_id: PartitionId) -> RemoteLog:
        """Return the remote log of a partition; a retriable error while it is loading."""
        remote = self.log(partition_id)
        if remote is None:
            raise KafkaError(
                ErrorCode.REPLICA_NOT_AVAILABLE, f"the remote log of {partition_id} is still loading"
            )
        return remote

    async def synchronize(self, partition_id: PartitionId) -> RemoteLog:
        """Return the remote log with everything that was committed before this call."""
        await self.topic.ensure()
        await self.refresh()
        feed = self._feed_of(partition_id)
        if feed is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{NAME} does not exist yet")
        feed.want(partition_id)
        await feed.synchronize()
        found = feed.log(partition_id)
        if found is None:
            raise KafkaError(ErrorCode.REPLICA_NOT_AVAILABLE, f"{partition_id} is not followed any more")
        return found

    async def publish(self, partition_id: PartitionId, record: Message) -> None:
        """Write a record and wait until this broker has replayed it."""
        feed = self._feed_of(partition_id)
        if feed is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{NAME} does not exist yet")
        offset = await self.topic.append(feed.index, encode_remote_log_record(record))
        try:
            async with asyncio.timeout(self._settings.publish_timeout_ms / 1000):
                await feed.reach(offset + 1)
        except TimeoutError:
            raise KafkaError(
                ErrorCode.REQUEST_TIMED_OUT, f"{NAME}-{feed.index} was not read up to offset {offset}"
            ) from None

    async def move(
        self, segment: RemoteSegment, state: SegmentState, custom_metadata: bytes | None = None
    ) -> None:
        """Write the change of a segment's state."""
        record = update_record(
            segment,
            state,
            broker_id=self._broker_id,
            now_ms=self._clock.time_ms(),
            custom_metadata=custom_metadata,
        )
        await self.publish(segment.partition_id, record)

    async def close(self) -> None:
        feeds, self._feeds = self._feeds, {}
        await asyncio.gather(*(feed.close() for feed in feeds.values()))
        await self.topic.close()
