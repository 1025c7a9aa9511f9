"""The transaction coordinator of a node: its shards, the markers they ask for, and what time brings."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from moldau.base.errors import KafkaError
from moldau.base.ids import TRANSACTION_STATE_TOPIC
from moldau.metadata.delta import MetadataDelta
from moldau.metadata.features import TRANSACTION_VERSION
from moldau.metadata.image import MetadataImage
from moldau.protocol.stored.coordinator import TRANSACTION_STATE
from moldau.server.brokers.peers import BrokerPeers
from moldau.server.coordinators.addition_channel import addition_channel
from moldau.server.coordinators.coordinator import Coordinator
from moldau.server.coordinators.marker_sender import MarkerSender
from moldau.statemachine.coordinator_records import Entry
from moldau.statemachine.decision import Decision
from moldau.statemachine.timers import Timers
from moldau.transactions.context import TransactionContext
from moldau.transactions.settings import TransactionSettings
from moldau.transactions.shard import TransactionShard

if TYPE_CHECKING:
    from moldau.server.node import Node

log = logging.getLogger(__name__)

R = TypeVar("R")


class Transactions(Coordinator[TransactionShard]):
    def __init__(self, node: Node) -> None:
        self._node = node
        self._markers = MarkerSender(node)
        #: Towards the coordinators of transactions that write to partitions of this node.
        self.additions = addition_channel(BrokerPeers(node, "add-partitions-to-txn"))
        self._context = TransactionContext(
            node.clock,
            lambda: TransactionSettings.from_config(node.config),
            lambda: node.image.features.level(TRANSACTION_VERSION),
            lambda: node.producer_ids.take(),
        )
        super().__init__(
            TRANSACTION_STATE_TOPIC,
            TRANSACTION_STATE,
            self._shard,
            replicas=node.replicas,
            clock=node.clock,
            pool=node.pool,
            timeout_ms=lambda: node.config.integer("request.timeout.ms"),
            on_effect=self._markers.send,
            # Markers of an epoch between may have been elsewhere: only a newer epoch counts after them.
            reloads_with_epoch=True,
        )

    def _shard(self, index: int, leader_epoch: int, timers: Timers) -> TransactionShard:
        return TransactionShard(self._context, leader_epoch, timers)

    def apply(self, delta: MetadataDelta, image: MetadataImage) -> None:
        super().apply(delta, image)
        self._markers.apply(image)
        self.additions.apply(image)

    def epoch_of(self, transactional_id: str) -> int | None:
        """In which epoch this node coordinates it; None when it does not, or not yet."""
        try:
            shard = self.active_shard(self.partition_of(transactional_id))
        except KafkaError:
            return None
        return None if shard is None else shard.coordinator_epoch

    async def decide(
        self, transactional_id: str, decide: Callable[[TransactionShard], Decision[Entry, R]]
    ) -> R:
        """A decision that may need a new producer id: one is at hand when it is taken."""
        await self._producer_id_at_hand()
        return await self.write(transactional_id, decide)

    async def abort_timed_out(self) -> None:
        """End the transactions that took longer than their producers allowed."""
        late = [name for _, shard in self.active_shards() for name in shard.timed_out()]
        for transactional_id in late:
            await self._abort(transactional_id)

    async def _abort(self, transactional_id: str) -> None:
        try:
            await self.decide(transactional_id, lambda shard: shard.abort_timed_out(transactional_id))
        except KafkaError as error:
            log.info("%s is aborted later: %s", transactional_id, error)

    async def expire(self) -> None:
        """Forget the transactional ids that nobody uses any more."""
        for index, _ in list(self.active_shards()):
            with contextlib.suppress(KafkaError):
                while await self.write_at(index, lambda shard: shard.expire()):
                    pass

    async def close(self) -> None:
        await super().close()
        await self._markers.close()
        await self.additions.close()

    async def _producer_id_at_hand(self) -> None:
        """Without one, a decision that needs it is refused, and those that do not go on."""
        with contextlib.suppress(KafkaError):
            await self._node.producer_ids.ready()
