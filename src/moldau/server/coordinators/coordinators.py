"""The coordinators of a node, their internal topics and their effects, kept up to date with the metadata."""

from __future__ import annotations

from typing import Any

from moldau.base.ids import CONSUMER_OFFSETS_TOPIC
from moldau.controller.topics.lifecycle import create_topics
from moldau.groups.context import GroupContext
from moldau.groups.counts import GroupCounts
from moldau.groups.settings import GroupSettings
from moldau.groups.shard import GroupShard
from moldau.metadata.delta import MetadataDelta
from moldau.metadata.image import MetadataImage
from moldau.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from moldau.protocol.stored.coordinator import CONSUMER_OFFSETS
from moldau.replication.replica_manager import ReplicaManager
from moldau.server.brokers.high_watermarks import LeaderHighWatermarks
from moldau.server.brokers.producer_ids import ProducerIds
from moldau.server.coordinators.coordinator import Coordinator
from moldau.server.coordinators.effects import EffectExecutors
from moldau.server.coordinators.internal_topics import InternalTopics
from moldau.server.coordinators.marker_sender import MarkerSender
from moldau.server.coordinators.share_coordinator import ShareCoordinator
from moldau.server.coordinators.streams_topics import StreamsTopics
from moldau.server.coordinators.transaction_coordinator import TransactionCoordinator
from moldau.server.coordinators.transaction_partitions import TransactionPartitions
from moldau.server.coordinators.txn_markers import TxnMarkerWriter
from moldau.server.coordinators.verification import TransactionVerifier
from moldau.server.services import NodeServices
from moldau.server.share.persister import Persister
from moldau.statemachine.effects import Effect


class Coordinators:
    def __init__(self, services: NodeServices, replicas: ReplicaManager, producer_ids: ProducerIds) -> None:
        node_id, metadata, settings = services.id, services.metadata, services.settings
        clock, pool, peers = services.clock, services.pool, services.broker_peers
        self._controller = services.controller
        self.group_counts = GroupCounts()
        self.groups: Coordinator[GroupShard] = Coordinator(
            CONSUMER_OFFSETS_TOPIC,
            CONSUMER_OFFSETS,
            lambda index, leader_epoch, timers: GroupShard(
                GroupContext(
                    timers,
                    clock,
                    services.randomness,
                    lambda: GroupSettings.from_config(settings.config),
                    counts=self.group_counts,
                )
            ),
            replicas=replicas,
            clock=clock,
            pool=pool,
            timeout_ms=lambda: settings.config.integer("offsets.commit.timeout.ms"),
            codec=lambda: settings.config.integer("offsets.topic.compression.codec"),
            on_effect=self._execute,
        )
        self.transactions = TransactionCoordinator(
            replicas,
            metadata,
            settings,
            producer_ids,
            peers("add-partitions-to-txn"),
            clock=clock,
            pool=pool,
            on_effect=self._execute,
        )
        self.share = ShareCoordinator(replicas, settings, clock=clock, pool=pool)
        self._all: list[Coordinator[Any]] = [self.groups, self.transactions, self.share]
        self.internal_topics = InternalTopics(lambda: settings.config, self._create)
        self.streams_topics = StreamsTopics(services.controller, clock)
        self.persister = Persister(node_id, metadata, self.share, self.internal_topics, peers("share-state"))
        self.high_watermarks = LeaderHighWatermarks(node_id, metadata, replicas, peers("high-watermarks"))
        self.txn_marker_writer = TxnMarkerWriter(replicas, self.groups, settings, clock)
        self._markers = MarkerSender(
            node_id, metadata, self.transactions, self.txn_marker_writer, peers("txn-marker-sender")
        )
        self._effects = EffectExecutors(self.groups, self.persister, pool, self._markers.send)
        self.transaction_partitions = TransactionPartitions(node_id, metadata, self.transactions)
        self.transaction_verifier = TransactionVerifier(
            replicas, self.transaction_partitions, settings, clock
        )

    def _execute(self, effect: Effect) -> None:
        self._effects.execute(effect)

    def apply(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Load partitions that this node leads now, close those it no longer leads; after the replicas."""
        for coordinator in self._all:
            coordinator.apply(delta, image)
        self._markers.apply(image)
        self.persister.apply(image)
        self.high_watermarks.apply(image)

    async def close(self) -> None:
        await self.internal_topics.close()
        await self.streams_topics.close()
        await self._effects.close()
        for coordinator in self._all:
            await coordinator.close()
        await self._markers.close()
        await self.persister.close()
        await self.high_watermarks.close()

    async def _create(self, request: CreateTopicsRequest) -> CreateTopicsResponse:
        return await self._controller.decide(None, request, create_topics)
