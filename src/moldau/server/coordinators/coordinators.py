"""The coordinators of a node, their internal topics and their effects, kept up to date with the metadata."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moldau.base.ids import CONSUMER_OFFSETS_TOPIC
from moldau.controller.topics.lifecycle import create_topics
from moldau.groups.context import GroupContext
from moldau.groups.settings import GroupSettings
from moldau.groups.shard import GroupShard
from moldau.metadata.delta import MetadataDelta
from moldau.metadata.image import MetadataImage
from moldau.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from moldau.protocol.stored.coordinator import CONSUMER_OFFSETS
from moldau.server.coordinators.coordinator import Coordinator
from moldau.server.coordinators.effects import EffectExecutors
from moldau.server.coordinators.internal_topics import InternalTopics
from moldau.server.coordinators.marker_sender import MarkerSender
from moldau.server.coordinators.share_coordinator import ShareCoordinator
from moldau.server.coordinators.transaction_coordinator import TransactionCoordinator
from moldau.server.share.latest_offsets import LatestOffsets
from moldau.server.share.persister import Persister
from moldau.statemachine.timers import Timers

if TYPE_CHECKING:
    from moldau.server.node import Node


class Coordinators:
    def __init__(self, node: Node) -> None:
        self._node = node
        self._markers = MarkerSender(node)
        self._effects = EffectExecutors(node, self._markers.send)
        self.groups: Coordinator[GroupShard] = Coordinator(
            CONSUMER_OFFSETS_TOPIC,
            CONSUMER_OFFSETS,
            self._group_shard,
            replicas=node.replicas,
            clock=node.clock,
            pool=node.pool,
            timeout_ms=lambda: node.config.integer("offsets.commit.timeout.ms"),
            codec=lambda: node.config.integer("offsets.topic.compression.codec"),
            on_effect=self._effects.execute,
        )
        self.transactions = TransactionCoordinator(node, self._effects.execute)
        self.share = ShareCoordinator(node)
        self.persister = Persister(node)
        self.latest_offsets = LatestOffsets(node)
        self._all: list[Coordinator[Any]] = [self.groups, self.transactions, self.share]
        self.internal_topics = InternalTopics(lambda: node.config, self._create)

    def _group_shard(self, index: int, leader_epoch: int, timers: Timers) -> GroupShard:
        node = self._node
        return GroupShard(
            GroupContext(timers, node.clock, node.randomness, lambda: GroupSettings.from_config(node.config))
        )

    def apply(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Load partitions that this node leads now, close those it no longer leads; after the replicas."""
        for coordinator in self._all:
            coordinator.apply(delta, image)
        self._markers.apply(image)
        self.persister.apply(image)
        self.latest_offsets.apply(image)

    async def close(self) -> None:
        await self.internal_topics.close()
        await self._effects.close()
        for coordinator in self._all:
            await coordinator.close()
        await self._markers.close()
        await self.persister.close()
        await self.latest_offsets.close()

    async def _create(self, request: CreateTopicsRequest) -> CreateTopicsResponse:
        return await self._node.controller_channel.decide(None, request, create_topics)
