"""What a node adds when `process.roles` has `broker`: logs, replicas, coordinators, its place among brokers.

The parts are hung on the node, where handlers look for them. Start: the folders are claimed, the logs opened
as the metadata says, this broker registers, lets clients in and is unfenced. Stop is the reverse: leaderships
given up, no new requests, background work ended, logs synced and marked clean.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from moldau.base.ids import TopicPartition, Uuid
from moldau.controller.partitions.isr import alter_partition
from moldau.controller.producer_ids import allocate_producer_ids
from moldau.metadata.delta import MetadataDelta
from moldau.metadata.image import MetadataImage
from moldau.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest
from moldau.replication.local_broker import LocalBroker
from moldau.replication.replica_manager import ReplicaManager
from moldau.server.brokers.lifecycle import BrokerLifecycle
from moldau.server.brokers.placements import Placements
from moldau.server.controller.calls import ALTER_PARTITION, FORWARDING
from moldau.server.coordinators.coordinators import Coordinators
from moldau.server.fetch_sessions import FetchSessionCache
from moldau.server.producer_ids import ProducerIds
from moldau.server.scheduler import Scheduler
from moldau.server.share.share_partition_manager import SharePartitionManager
from moldau.server.startup.folders import NodeFolders
from moldau.storage.cleaner.job import CleanerRunner
from moldau.storage.log_manager import DirectoryFailure, LogManager

if TYPE_CHECKING:
    from moldau.server.node import Node

log = logging.getLogger(__name__)

_SHUTDOWN_SECONDS = 30.0
#: How often closed segments are looked through for damage.
_CHECK_INTERVAL_MS = 86_400_000


class BrokerRole:
    def __init__(self, node: Node, folders: NodeFolders, cleaner: CleanerRunner) -> None:
        self._node = node
        self._scheduler = Scheduler()
        #: Whether the metadata in place shows this process among the brokers.
        self._registered = False
        self._joined = False
        self._placements = Placements(
            lambda placed: node.in_background(node.lifecycle.report_placement(placed))
        )
        config = node.config
        node.fetch_sessions = FetchSessionCache(
            node.clock, node.randomness, config["max.incremental.fetch.session.cache.slots"]
        )
        node.logs = LogManager(
            node.disk,
            node.clock,
            node.pool,
            node.randomness,
            folders.log_directories,
            cleaner,
            settings=node.settings.log_manager_settings(),
            cleaner_settings=node.settings.cleaner_settings(),
            on_directory_failure=self._directory_failed,
            on_log_replaced=lambda topic_partition, moved: self._placements.found(
                node.replicas.log_replaced(topic_partition, moved)
            ),
        )
        node.replicas = ReplicaManager(
            LocalBroker(
                node.id, node.clock, lambda: node.config, lambda: node.lifecycle.epoch, node.suspects.lost
            ),
            node.logs,
            node.settings.log_config,
            lambda request: node.controller_channel.send(ALTER_PARTITION, request, alter_partition),
            node.open_connection,
        )
        node.coordinators = Coordinators(node)
        node.share = SharePartitionManager(node)
        node.producer_ids = ProducerIds(self._allocate_producer_ids)

    # Start.

    async def load_logs(self) -> None:
        node = self._node
        image = node.metadata.image
        node.settings.follow(image)
        self.follow_settings()

        def is_stray(topic_partition: TopicPartition, topic_id: Uuid | None) -> bool:
            topic = image.topics.by_name.get(topic_partition.topic)
            partition = topic.partitions.get(topic_partition.partition) if topic is not None else None
            moved = topic is not None and topic_id is not None and topic.id != topic_id
            return partition is None or moved or node.id not in partition.replicas

        await node.logs.load(lambda topic: node.settings.log_config(image, topic), is_stray)

    async def register(self) -> None:
        node = self._node
        node.lifecycle = BrokerLifecycle(
            node.identity,
            node.controller_channel,
            node.publisher,
            cordoned=lambda: [each.id for each in node.logs.directories if each.cordoned and each.id],
        )
        online = [each.id for each in node.logs.directories if each.online and each.id is not None]
        timeout_seconds = node.config["initial.broker.registration.timeout.ms"] / 1000
        await node.lifecycle.register(online, node.logs.previous_broker_epoch, timeout_seconds)
        node.replicas.begin_fetching()

    async def unfence(self) -> None:
        node = self._node
        await node.lifecycle.unfence(node.config["initial.broker.registration.timeout.ms"] / 1000)
        self._joined = True
        self._schedule()
        self._placements.begin()

    def controller_changed(self) -> None:
        """The new one notices the end of this process by a connection: it gets one at once."""
        if self._joined:
            self._node.in_background(self._node.lifecycle.beat())

    def _schedule(self) -> None:
        node = self._node
        every, upkeep, config = self._scheduler.every, node.logs.upkeep, node.config
        first = config["log.initial.task.delay.ms"]
        every(config["log.retention.check.interval.ms"], upkeep.retention, first_ms=first)
        # Closed segments are synced soon after they are closed, however rarely `flush.ms` is looked at.
        every(min(config["log.flush.scheduler.interval.ms"], 1000), upkeep.flush_due)
        every(config["log.flush.offset.checkpoint.interval.ms"], upkeep.write_recovery_points, first_ms=first)
        every(
            config["log.flush.start.offset.checkpoint.interval.ms"], upkeep.write_log_starts, first_ms=first
        )
        every(config["replica.high.watermark.checkpoint.interval.ms"], upkeep.write_high_watermarks)
        every(
            config["producer.id.expiration.check.interval.ms"],
            lambda: upkeep.expire_producers(node.config["producer.id.expiration.ms"]),
        )
        every(max(1, config["replica.lag.time.max.ms"] // 2), node.replicas.shrink_isr)
        every(1000, upkeep.remove_deleted_files)
        every(1000, node.logs.moves.advance)
        every(1000, lambda: self._placements.found_by(node.replicas.open_again()))
        every(lambda: node.config.integer("log.cleaner.backoff.ms"), node.logs.cleaner.clean_due)
        every(_CHECK_INTERVAL_MS, upkeep.check)
        every(config["broker.heartbeat.interval.ms"], node.lifecycle.beat)
        self._schedule_coordinators()

    def _schedule_coordinators(self) -> None:
        every, config = self._scheduler.every, self._node.config
        transactions, share = self._node.coordinators.transactions, self._node.coordinators.share
        every(
            config["transaction.abort.timed.out.transaction.cleanup.interval.ms"],
            transactions.abort_timed_out,
        )
        every(
            config["transaction.remove.expired.transaction.cleanup.interval.ms"],
            transactions.expire,
        )
        every(config["share.coordinator.state.topic.prune.interval.ms"], share.prune)
        every(config["share.coordinator.cold.partition.snapshot.interval.ms"], share.snapshot_cold)

    # Running.

    async def apply(self, delta: MetadataDelta, image: MetadataImage) -> None:
        node = self._node
        if not self._registered:
            # Roles of a former life are not ours: what made this broker fit for them may be lost with it.
            if not self._knows_us(image):
                return
            self._registered = True
            delta = MetadataDelta.between(MetadataImage.empty(), image)
        self._check_that_it_is_us(image)
        await self._placements.found_by(node.replicas.apply(delta, image))
        node.coordinators.apply(delta, image)
        node.share.apply(delta, image)
        stopping = any(
            each.in_controlled_shutdown and not each.fenced and each.id != node.id
            for each in image.cluster.brokers.values()
        )
        if stopping and self._joined:
            node.in_background(node.lifecycle.follow(image))

    def _knows_us(self, image: MetadataImage) -> bool:
        known = image.cluster.brokers.get(self._node.id)
        return known is not None and known.incarnation_id == self._node.identity.incarnation_id

    def _check_that_it_is_us(self, image: MetadataImage) -> None:
        """Whoever has registered with our id after us leads what we led: two of us must not."""
        if self._node.id in image.cluster.brokers and not self._knows_us(image):
            raise RuntimeError(
                f"another process has registered with node.id={self._node.id} while this one was not heard "
                "of; every node needs an id of its own"
            )

    def follow_settings(self) -> None:
        """Put dynamic broker settings into force."""
        node, logs = self._node, self._node.logs
        logs.cleaner.settings = node.settings.cleaner_settings()
        logs.settings = node.settings.log_manager_settings()
        logs.loader.producer_expiration_ms = node.config["producer.id.expiration.ms"]
        logs.directories.cordon(node.settings.cordoned_directories())

    async def _allocate_producer_ids(self) -> range:
        answer = await self._node.controller_channel.send(
            FORWARDING,
            AllocateProducerIdsRequest(broker_id=self._node.id, broker_epoch=self._node.lifecycle.epoch),
            allocate_producer_ids,
        )
        return range(answer.producer_id_start, answer.producer_id_start + answer.producer_id_len)

    def _directory_failed(self, failure: DirectoryFailure) -> None:
        node = self._node
        node.replicas.went_offline(failure.partitions)
        directory = next(each for each in node.logs.directories if each.path == failure.path)
        if failure.last:
            node.fatal(OSError(f"the last log directory has failed: {failure.reason}"))
        elif self._joined and directory.id is not None:
            node.in_background(node.lifecycle.directory_failed(directory.id))

    # Stop.

    async def leave(self) -> None:
        """Have the leaderships of this broker moved, if it came to have any."""
        if self._joined and self._node.config["controlled.shutdown.enable"]:
            await self._node.lifecycle.controlled_shutdown(_SHUTDOWN_SECONDS)

    async def end_work(self) -> None:
        await self._scheduler.close()
        await self._node.replicas.close()

    async def close(self) -> None:
        node = self._node
        await node.share.close()
        await node.coordinators.close()
        await node.logs.shutdown(self._last_epoch())

    def _last_epoch(self) -> int:
        """Of the registration that the logs are in step with, this one or, until there is one, the last."""
        lifecycle: BrokerLifecycle | None = getattr(self._node, "lifecycle", None)
        if lifecycle is not None and lifecycle.epoch >= 0:
            return lifecycle.epoch
        before = self._node.logs.previous_broker_epoch
        return -1 if before is None else before
