"""The coordinators of a node and their topics, kept in step with the metadata."""

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
from moldau.server.consumer_protocol import RegexResolution
from moldau.server.coordinators.coordinator import Coordinator
from moldau.server.coordinators.internal_topics import InternalTopics
from moldau.server.coordinators.share import ShareStates
from moldau.server.coordinators.transactions import Transactions
from moldau.server.share.initialization import StateInitialization
from moldau.server.share.partition_ends import PartitionEnds
from moldau.server.share.persister import Persister
from moldau.statemachine.timers import Timers

if TYPE_CHECKING:
    from moldau.server.node import Node


class Coordinators:
    def __init__(self, node: Node) -> None:
        self._node = node
        self._regexes = RegexResolution(node)
        self._share_state = StateInitialization(node)
        self.groups: Coordinator[GroupShard] = Coordinator(
            CONSUMER_OFFSETS_TOPIC,
            CONSUMER_OFFSETS,
            self._group_shard,
            replicas=node.replicas,
            clock=node.clock,
            pool=node.pool,
            timeout_ms=lambda: node.config.integer("offsets.commit.timeout.ms"),
            codec=lambda: node.config.integer("offsets.topic.compression.codec"),
            on_effect=self._take,
        )
        self.transactions = Transactions(node)
        self.share = ShareStates(node)
        self.persister = Persister(node)
        self.partition_ends = PartitionEnds(node)
        self._all: list[Coordinator[Any]] = [self.groups, self.transactions, self.share]
        self.internal_topics = InternalTopics(lambda: node.config, self._create)

    def _group_shard(self, index: int, leader_epoch: int, timers: Timers) -> GroupShard:
        node = self._node
        return GroupShard(
            GroupContext(timers, node.clock, node.randomness, lambda: GroupSettings.from_config(node.config))
        )

    def _take(self, effect: Any) -> None:
        """What a group's decision asks the node to do."""
        self._regexes.take(effect)
        self._share_state.take(effect)

    def apply(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """The replicas are in place: take over what this node leads now, drop what it no longer leads."""
        for coordinator in self._all:
            coordinator.apply(delta, image)
        self.persister.apply(image)
        self.partition_ends.apply(image)

    async def close(self) -> None:
        await self.internal_topics.close()
        await self._regexes.close()
        await self._share_state.close()
        for coordinator in self._all:
            await coordinator.close()
        await self.persister.close()
        await self.partition_ends.close()

    async def _create(self, request: CreateTopicsRequest) -> CreateTopicsResponse:
        return await self._node.controller_channel.decide(None, request, create_topics)
