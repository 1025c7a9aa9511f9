"""Everything of a flow except the copy, on one event loop: topics, configs, ACLs, groups.

The parts are independent: one that fails is repeated after a delay, the others continue.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence

from moldau.base.clock import Clock
from moldau.client.batches.writer import AsyncBatchWriter
from moldau.client.wire.cluster import Cluster
from moldau.pipelines.mirror.config.flow import Flow
from moldau.pipelines.mirror.flows.group_offsets import GroupOffsets
from moldau.pipelines.mirror.flows.periodic import NEVER_AGAIN, repeat, repeat_until_done
from moldau.pipelines.mirror.flows.topic_settings import TopicSettings
from moldau.pipelines.mirror.flows.topics import TargetTopics
from moldau.pipelines.mirror.topic_log import create_compacted

_TOPICS_KNOWN_S = 0.5


class FlowCoordinator:
    def __init__(self, flow: Flow, clock: Clock) -> None:
        self._flow = flow
        self._clock = clock
        self._source = Cluster(flow.source_settings("admin"))
        self._target = Cluster(flow.target_settings("admin"))
        self._topics = TargetTopics(flow, self._source, self._target)
        self._settings = TopicSettings(flow, self._source, self._target, self._topics)

    async def prepare(self) -> None:
        """Create the internal topics; errors are raised, because nothing works without them."""
        flow = self._flow
        offsets, partitions = flow.offsets_topic, flow["offset.storage.partitions"]
        await self._create(self._target, offsets, "offset.storage.replication.factor", partitions)
        await self.prepare_syncs()
        await self.prepare_checkpoints()

    async def prepare_syncs(self) -> None:
        flow = self._flow
        if flow["emit.offset-syncs.enabled"]:
            cluster = self._source if flow.syncs_on_source else self._target
            await self._create(cluster, flow.offset_syncs_topic, "offset-syncs.topic.replication.factor")

    async def prepare_checkpoints(self) -> None:
        if self._flow["emit.checkpoints.enabled"]:
            topic = self._flow.checkpoints_topic
            await self._create(self._target, topic, "checkpoints.topic.replication.factor")

    async def _create(self, cluster: Cluster, topic: str, factor: str, partitions: int = 1) -> None:
        await create_compacted(cluster, topic, partitions, self._flow[factor], factor)

    async def run(self) -> None:
        """Do everything until cancelled."""
        await self._run([*self._topic_parts(), self._translate_groups()])

    async def run_topics(self) -> None:
        """Create topics, and copy their configs and ACLs, until cancelled."""
        await self._run(list(self._topic_parts()))

    async def run_groups(self) -> None:
        """Translate the offsets of groups until cancelled."""
        await self._run([self._translate_groups()])

    async def _run(self, parts: Sequence[Awaitable[None]]) -> None:
        try:
            await asyncio.gather(*parts)
        finally:
            self.close()

    def close(self) -> None:
        self._source.close()
        self._target.close()

    def _topic_parts(self) -> Iterator[Awaitable[None]]:
        flow = self._flow
        yield self._repeat("refreshing topics", "refresh.topics", self._topics.refresh)
        if flow["sync.topic.configs.enabled"]:
            yield self._repeat("copying topic configs", "sync.topic.configs", self._sync_configs)
        if flow["sync.topic.acls.enabled"]:
            yield self._repeat("copying ACLs", "sync.topic.acls", self._settings.sync_acls)

    async def _sync_configs(self) -> None:
        """Copy configs once the topics are known."""
        while not self._topics.mirrored:
            await asyncio.sleep(_TOPICS_KNOWN_S)
        await self._settings.sync_configs()

    async def _translate_groups(self) -> None:
        if not (self._flow["emit.checkpoints.enabled"] and self._flow["emit.offset-syncs.enabled"]):
            return
        groups = GroupOffsets(self._flow, self._source, self._target, self._clock)
        writer = AsyncBatchWriter(self._flow.target_settings("checkpoints"))

        async def emit() -> None:
            await groups.emit(writer)

        try:
            await repeat_until_done(f"{self._flow}: reading checkpoints", groups.load)
            # Each of the periodic parts below needs the result of the one before it.
            await repeat_until_done(f"{self._flow}: finding groups", groups.refresh_groups)
            await repeat_until_done(f"{self._flow}: emitting checkpoints", emit)
            parts = [
                self._repeat("refreshing groups", "refresh.groups", groups.refresh_groups),
                self._repeat("emitting checkpoints", "emit.checkpoints", emit),
            ]
            if self._flow["sync.group.offsets.enabled"]:
                parts.append(self._repeat("committing group offsets", "sync.group.offsets", groups.commit))
            await asyncio.gather(*parts)
        finally:
            await writer.close()

    async def _repeat(self, what: str, setting: str, work: Callable[[], Awaitable[None]]) -> None:
        enabled = self._flow[f"{setting}.enabled"]
        interval = self._flow[f"{setting}.interval.seconds"] if enabled else NEVER_AGAIN
        await repeat(f"{self._flow}: {what}", interval, work)
