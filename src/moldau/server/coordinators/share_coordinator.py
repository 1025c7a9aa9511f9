"""The share coordinator of a node (KIP-932): its shards, periodic snapshots and the pruning of their logs."""

from __future__ import annotations

import contextlib
import logging

from moldau.base.clock import Clock
from moldau.base.errors import KafkaError
from moldau.base.ids import SHARE_STATE_TOPIC
from moldau.base.pool import Pool
from moldau.protocol.stored.coordinator import SHARE_GROUP_STATE
from moldau.replication.replica_manager import ReplicaManager
from moldau.server.coordinators.coordinator import Coordinator
from moldau.server.settings import NodeSettings
from moldau.share.shard import ShareCoordinatorSettings, ShareShard
from moldau.statemachine.timers import Timers

logger = logging.getLogger(__name__)


class ShareCoordinator(Coordinator[ShareShard]):
    def __init__(self, replicas: ReplicaManager, settings: NodeSettings, *, clock: Clock, pool: Pool) -> None:
        self._replicas = replicas
        self._settings = settings
        self._clock = clock
        super().__init__(
            SHARE_STATE_TOPIC,
            SHARE_GROUP_STATE,
            self._shard,
            replicas=replicas,
            clock=clock,
            pool=pool,
            timeout_ms=lambda: settings.config.integer("share.coordinator.write.timeout.ms"),
            codec=lambda: settings.config.integer("share.coordinator.state.topic.compression.codec"),
        )

    def _shard(self, index: int, leader_epoch: int, timers: Timers) -> ShareShard:
        return ShareShard(timers, self._clock, self._shard_settings)

    def _shard_settings(self) -> ShareCoordinatorSettings:
        integer = self._settings.config.integer
        return ShareCoordinatorSettings(
            updates_per_snapshot=integer("share.coordinator.snapshot.update.records.per.snapshot"),
            cold_snapshot_interval_ms=integer("share.coordinator.cold.partition.snapshot.interval.ms"),
        )

    async def snapshot_cold(self) -> None:
        """Write new snapshots of share partitions that were not updated for long."""
        for index, _ in list(self.active_shards()):
            with contextlib.suppress(KafkaError):
                await self.write_at(index, lambda shard: shard.snapshot_cold())

    async def prune(self) -> None:
        """Delete the records before the oldest snapshot in use."""
        for index, shard in list(self.active_shards()):
            offset = shard.redundant_before()
            if offset is None:
                continue
            with contextlib.suppress(KafkaError):
                found = self._replicas.by_name(self.topic, index).leader_log()
                if found.log_start_offset < offset <= found.high_watermark:
                    found.delete_records_before(offset)
                    logger.info("pruned %s-%d up to offset %d", self.topic, index, offset)
