"""The transaction coordinator of a node: its shards, transaction timeouts and expiry of transactional ids."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable
from typing import TypeVar

from moldau.base.clock import Clock
from moldau.base.errors import KafkaError
from moldau.base.ids import TRANSACTION_STATE_TOPIC
from moldau.base.pool import Pool
from moldau.metadata.delta import MetadataDelta
from moldau.metadata.features import TRANSACTION_VERSION
from moldau.metadata.image import MetadataImage
from moldau.protocol.stored.coordinator import TRANSACTION_STATE
from moldau.replication.replica_manager import ReplicaManager
from moldau.server.brokers.peers import BrokerPeers
from moldau.server.brokers.producer_ids import ProducerIds
from moldau.server.coordinators.add_partitions_channel import add_partitions_channel
from moldau.server.coordinators.coordinator import Coordinator
from moldau.server.publisher import MetadataPublisher
from moldau.server.settings import NodeSettings
from moldau.statemachine.coordinator_records import Entry
from moldau.statemachine.decision import Decision
from moldau.statemachine.effects import Effect
from moldau.statemachine.timers import Timers
from moldau.transactions.context import TransactionContext, TransactionSettings
from moldau.transactions.shard import TransactionShard

logger = logging.getLogger(__name__)

R = TypeVar("R")


class TransactionCoordinator(Coordinator[TransactionShard]):
    def __init__(
        self,
        replicas: ReplicaManager,
        metadata: MetadataPublisher,
        settings: NodeSettings,
        producer_ids: ProducerIds,
        peers: BrokerPeers,
        *,
        clock: Clock,
        pool: Pool,
        on_effect: Callable[[Effect], None],
    ) -> None:
        self._producer_ids = producer_ids
        #: To the coordinators of transactions that write to partitions of this node.
        self.add_partitions_channel = add_partitions_channel(peers)
        self._context = TransactionContext(
            clock,
            lambda: TransactionSettings.from_config(settings.config),
            lambda: metadata.image.features.level(TRANSACTION_VERSION),
            producer_ids.take,
        )
        super().__init__(
            TRANSACTION_STATE_TOPIC,
            TRANSACTION_STATE,
            self._shard,
            replicas=replicas,
            clock=clock,
            pool=pool,
            timeout_ms=lambda: settings.config.integer("request.timeout.ms"),
            on_effect=on_effect,
            # Another broker may have written markers in an epoch in between; markers need a newer one.
            reloads_with_epoch=True,
        )

    def _shard(self, index: int, leader_epoch: int, timers: Timers) -> TransactionShard:
        return TransactionShard(self._context, leader_epoch, timers)

    def apply(self, delta: MetadataDelta, image: MetadataImage) -> None:
        super().apply(delta, image)
        self.add_partitions_channel.apply(image)

    def epoch_of(self, transactional_id: str) -> int | None:
        """Return the epoch in which this node coordinates an id; None if it does not, or is still loading."""
        try:
            shard = self.active_shard(self.partition_of(transactional_id))
        except KafkaError:
            return None
        return None if shard is None else shard.coordinator_epoch

    async def decide(
        self, transactional_id: str, decide: Callable[[TransactionShard], Decision[Entry, R]]
    ) -> R:
        """Run a decision that may need a new producer id, after requesting a block of ids if none is left."""
        await self._ensure_producer_id()
        return await self.write(transactional_id, decide)

    async def abort_timed_out(self) -> None:
        """Abort the transactions that exceed their `transaction.timeout.ms`."""
        timed_out = [name for _, shard in self.active_shards() for name in shard.timed_out()]
        for transactional_id in timed_out:
            await self._abort(transactional_id)

    async def _abort(self, transactional_id: str) -> None:
        try:
            await self.decide(transactional_id, lambda shard: shard.abort_timed_out(transactional_id))
        except KafkaError as error:
            logger.info("aborting %s is retried: %s", transactional_id, error)

    async def expire(self) -> None:
        """Remove ids that were not used for `transactional.id.expiration.ms`."""
        for index, _ in list(self.active_shards()):
            with contextlib.suppress(KafkaError):
                while await self.write_at(index, lambda shard: shard.expire()):
                    pass

    async def close(self) -> None:
        await super().close()
        await self.add_partitions_channel.close()

    async def _ensure_producer_id(self) -> None:
        """Ignore failures: only decisions that need a new id are refused then."""
        with contextlib.suppress(KafkaError):
            await self._producer_ids.ensure_block()
