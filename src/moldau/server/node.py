"""The node, wired by hand: every part is made here and handed what it needs.

Start: take the ports, read and lock the folders, load the metadata log and lead the quorum, open the logs,
register, then let clients in. Stop is the reverse: leaderships given up, no new requests, background work
ended, logs synced and marked clean.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from moldau.base.broker_config import BrokerConfig
from moldau.base.clock import Clock
from moldau.base.ids import Randomness, TopicPartition, Uuid, random_uuid
from moldau.base.pool import Pool
from moldau.controller.controller import Controller
from moldau.metadata.delta import MetadataDelta
from moldau.metadata.image import MetadataImage
from moldau.network.client import OpenConnection
from moldau.network.listener import ConnectionLimits, Listener, OpenSockets
from moldau.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest
from moldau.quorum.metadata_quorum import MetadataQuorum
from moldau.quorum.settings import QuorumSettings
from moldau.replication.replica_manager import ReplicaManager
from moldau.server.apis import ServedApi, served_apis
from moldau.server.broker_lifecycle import BrokerLifecycle, Identity
from moldau.server.controller_channel import ControllerChannel
from moldau.server.coordinators.coordinators import Coordinators
from moldau.server.dispatcher import ApiDispatcher
from moldau.server.endpoints import advertised
from moldau.server.fetch_sessions import FetchSessionCache
from moldau.server.loop_lag import LoopLag
from moldau.server.node_settings import NodeSettings
from moldau.server.placements import Placements
from moldau.server.producer_ids import ProducerIds
from moldau.server.publisher import Publisher
from moldau.server.roles import BROKER, CONTROLLER
from moldau.server.scheduler import Scheduler
from moldau.server.share.share_partitions import SharePartitions
from moldau.server.storage_folders import NodeFolders, read_folders
from moldau.storage.cleaner_job import CleanerRunner
from moldau.storage.disk import Disk
from moldau.storage.log_directory import LogDirectory
from moldau.storage.log_manager import DirectoryFailure, LogManager

log = logging.getLogger(__name__)

_SHUTDOWN_SECONDS = 30.0
#: How often closed segments are looked through for damage.
_CHECK_INTERVAL_MS = 86_400_000


class Node:
    """One process of a cluster, with the roles of broker and controller.

    `start` may be called once; what it makes (`metadata`, `logs`, `replicas`, …) is there from then on.
    """

    def __init__(
        self,
        config: BrokerConfig,
        *,
        clock: Clock,
        randomness: Randomness,
        disk: Disk,
        pool: Pool,
        cleaner: CleanerRunner,
        on_fatal: Callable[[], None],
        open_sockets: OpenSockets | None = None,
        open_connection: OpenConnection | None = None,
    ) -> None:
        self.id = config.node_id
        #: How connections to other nodes are opened; None: as the loop does.
        self.open_connection = open_connection
        self.clock = clock
        self.disk = disk
        self.pool = pool
        self.failed = False
        self.ports: dict[str, int] = {}
        self.cluster_id = ""
        self.limits = ConnectionLimits()
        self.settings = NodeSettings(config, self.limits)
        self.fetch_sessions = FetchSessionCache(
            clock, randomness, config["max.incremental.fetch.session.cache.slots"]
        )
        self.randomness = randomness
        self._cleaner = cleaner
        self._on_fatal = on_fatal
        self._open_sockets = open_sockets
        self.loop_lag = LoopLag(clock)
        self._scheduler = Scheduler()
        self._publisher = Publisher(self._apply, self._fatal)
        unstable = config["unstable.api.versions.enable"]
        self._apis = {role: served_apis(role, unstable=unstable) for role in (BROKER, CONTROLLER)}
        self._listeners: list[Listener] = []
        #: Set when the metadata has a folder of its own, which then needs a lock of its own.
        self._metadata_folder: LogDirectory | None = None
        self._background: dict[asyncio.Task[None], None] = {}
        self._placements = Placements(
            lambda placed: self._in_background(self.lifecycle.report_placement(placed))
        )
        self._started = False

    # What handlers ask.

    @property
    def config(self) -> BrokerConfig:
        """The configuration in force, dynamic changes included."""
        return self.settings.config

    @property
    def image(self) -> MetadataImage:
        """The metadata that is in place on this node."""
        return self._publisher.image

    def role_of(self, listener_name: str) -> str:
        return CONTROLLER if listener_name in self.config.controller_listener_names else BROKER

    def apis_of(self, listener_name: str) -> Mapping[int, ServedApi]:
        return self._apis[self.role_of(listener_name)]

    def any_broker_id(self) -> int:
        """What clients are told is the controller: any broker, because brokers forward to it."""
        return self.id if self.id in self.image.cluster.brokers else -1

    # Start.

    async def start(self) -> None:
        self._bind()
        folders = await self.pool.run(read_folders, self.disk, self.clock, self.randomness, self.config)
        self.cluster_id = folders.cluster_id
        await self._claim_logs(folders)
        await self._lead_quorum(folders)
        await self._load_logs()
        self._publisher.start()
        await self._publisher.caught_up()
        await self._join()
        self._schedule()
        self.loop_lag.start()
        for listener in self._listeners:
            await listener.accept()
        self._started = True
        self._placements.begin()
        log.info("node %d of cluster %s is ready on %s", self.id, self.cluster_id, self.ports)

    def _bind(self) -> None:
        for endpoint in self.config.listeners:
            dispatcher = ApiDispatcher(self, self._apis[self.role_of(endpoint.name)], endpoint.protocol)
            listener = Listener(
                endpoint.name,
                dispatcher,
                self.limits,
                max_frame=self.config["socket.request.max.bytes"],
                backlog=self.config["socket.listen.backlog.size"],
                send_buffer_bytes=self.config["socket.send.buffer.bytes"],
                receive_buffer_bytes=self.config["socket.receive.buffer.bytes"],
                open_sockets=self._open_sockets,
            )
            self._listeners.append(listener)
            self.ports[endpoint.name] = listener.bind(endpoint.host or None, endpoint.port)

    async def _lead_quorum(self, folders: NodeFolders) -> None:
        controller = Controller(self.config, self.cluster_id, self.randomness)
        settings = QuorumSettings.from_config(self.config, folders.metadata_directory_id)
        self.metadata = MetadataQuorum(
            settings, controller, disk=self.disk, clock=self.clock, pool=self.pool, on_failure=self._fatal
        )
        self.metadata.add_listener(self._publisher.announce)
        self.controller_channel = ControllerChannel(self.metadata, self.clock, self._publisher.caught_up)
        self.producer_ids = ProducerIds(self._allocate_producer_ids)
        await self.metadata.start()
        if self.metadata.image.acls:
            log.warning("the metadata holds ACLs; without an authorizer they are kept and not enforced")

    async def _claim_logs(self, folders: NodeFolders) -> None:
        self.logs = LogManager(
            self.disk,
            self.clock,
            self.pool,
            self.randomness,
            folders.log_directories,
            self._cleaner,
            settings=self.settings.log_manager_settings(),
            cleaner_settings=self.settings.cleaner_settings(),
            on_directory_failure=self._directory_failed,
            on_log_replaced=lambda topic_partition, moved: self._placements.found(
                self.replicas.log_replaced(topic_partition, moved)
            ),
        )
        self.replicas = ReplicaManager(self.id, self.logs, self.settings.log_config, self.clock)
        self.coordinators = Coordinators(self)
        self.share = SharePartitions(self)
        await self.logs.claim()
        if self.config.metadata_log_dir not in folders.log_directories:
            metadata_folder = LogDirectory(self.disk, self.pool, self.config.metadata_log_dir)
            await self.pool.run(metadata_folder.claim)
            self._metadata_folder = metadata_folder

    async def _load_logs(self) -> None:
        image = self.metadata.image
        self._follow_settings(image)

        def is_stray(topic_partition: TopicPartition, topic_id: Uuid | None) -> bool:
            topic = image.topics.by_name.get(topic_partition.topic)
            partition = topic.partitions.get(topic_partition.partition) if topic is not None else None
            moved = topic is not None and topic_id is not None and topic.id != topic_id
            return partition is None or moved or self.id not in partition.replicas

        await self.logs.load(lambda topic: self.settings.log_config(image, topic), is_stray)

    async def _join(self) -> None:
        config = self.config
        identity = Identity(
            node_id=self.id,
            cluster_id=self.cluster_id,
            incarnation_id=random_uuid(self.randomness),
            rack=config.text("broker.rack"),
            broker_endpoints=advertised(config.advertised_listeners, self.ports),
            controller_endpoints=advertised(config.advertised_controller_listeners, self.ports),
        )
        self.lifecycle = BrokerLifecycle(
            identity,
            self.controller_channel,
            image=lambda: self.image,
            cordoned=lambda: [each.id for each in self.logs.directories if each.cordoned and each.id],
        )
        online = [each.id for each in self.logs.directories if each.online and each.id is not None]
        await self.lifecycle.register(online, self.logs.previous_broker_epoch)
        await self.lifecycle.unfence()

    def _schedule(self) -> None:
        every, upkeep, config = self._scheduler.every, self.logs.upkeep, self.config
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
            lambda: upkeep.expire_producers(self.config["producer.id.expiration.ms"]),
        )
        every(
            config["transaction.abort.timed.out.transaction.cleanup.interval.ms"],
            self.coordinators.transactions.abort_timed_out,
        )
        every(
            config["transaction.remove.expired.transaction.cleanup.interval.ms"],
            self.coordinators.transactions.expire,
        )
        every(config["share.coordinator.state.topic.prune.interval.ms"], self.coordinators.share.prune)
        every(
            config["share.coordinator.cold.partition.snapshot.interval.ms"],
            self.coordinators.share.snapshot_cold,
        )
        every(1000, upkeep.remove_deleted_files)
        every(1000, self.logs.moves.advance)
        every(1000, lambda: self._placements.found_by(self.replicas.open_again()))
        every(lambda: self.config.integer("log.cleaner.backoff.ms"), self.logs.cleaner.clean_due)
        every(_CHECK_INTERVAL_MS, upkeep.check)
        every(config["broker.heartbeat.interval.ms"], self.lifecycle.beat)
        every(1000, self._close_idle_connections)
        every(1000, self._controller_upkeep)
        every(60_000, self.metadata.maintain)

    # Running.

    async def _apply(self, delta: MetadataDelta, image: MetadataImage) -> None:
        if delta.broker_configs_changed(self.id):
            self._follow_settings(image)
        await self._placements.found_by(self.replicas.apply(delta, image))
        self.coordinators.apply(delta, image)
        self.share.apply(delta, image)

    def _follow_settings(self, image: MetadataImage) -> None:
        """Put dynamic broker settings into force."""
        self.settings.follow(image)
        self.logs.cleaner.settings = self.settings.cleaner_settings()
        self.logs.settings = self.settings.log_manager_settings()
        self.logs.loader.producer_expiration_ms = self.config["producer.id.expiration.ms"]
        self.logs.directories.cordon(self.settings.cordoned_directories())
        self.pool.resize(self.config["background.threads"])

    def _close_idle_connections(self) -> None:
        self.limits.close_idle(asyncio.get_running_loop().time())

    async def _controller_upkeep(self) -> None:
        while await self.metadata.write(
            lambda: self.metadata.controller.upkeep(int(self.clock.monotonic() * 1000))
        ):
            await asyncio.sleep(0)

    async def _allocate_producer_ids(self) -> range:
        answer = await self.controller_channel.allocate_producer_ids(
            AllocateProducerIdsRequest(broker_id=self.id, broker_epoch=self.lifecycle.epoch)
        )
        return range(answer.producer_id_start, answer.producer_id_start + answer.producer_id_len)

    def _directory_failed(self, failure: DirectoryFailure) -> None:
        self.replicas.went_offline(failure.partitions)
        directory = next(each for each in self.logs.directories if each.path == failure.path)
        if failure.last:
            self._fatal(OSError(f"the last log directory has failed: {failure.reason}"))
        elif self._started and directory.id is not None:
            self._in_background(self.lifecycle.directory_failed(directory.id))

    def _fatal(self, error: Exception) -> None:
        log.critical("the node cannot go on: %s", error, exc_info=error)
        self.failed = True
        self._on_fatal()

    def _in_background(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._background[task] = None
        task.add_done_callback(self._background_ended)

    def _background_ended(self, task: asyncio.Task[None]) -> None:
        self._background.pop(task, None)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            log.error("background work failed: %s", error, exc_info=error)

    # Stop.

    async def stop(self) -> None:
        """End in order whatever `start` got to."""
        if self._started and not self.failed and self.config["controlled.shutdown.enable"]:
            await self.lifecycle.controlled_shutdown(_SHUTDOWN_SECONDS)
        for listener in self._listeners:
            await listener.close()
        self.loop_lag.stop()
        await self._scheduler.close()
        await asyncio.gather(*self._background, return_exceptions=True)
        await self._publisher.close()
        if hasattr(self, "metadata"):
            await self.metadata.close()
        if hasattr(self, "coordinators"):
            await self.share.close()
            await self.coordinators.close()
            await self.logs.shutdown(self.lifecycle.epoch if self._started else -1)
        if self._metadata_folder is not None:
            self._metadata_folder.release()
