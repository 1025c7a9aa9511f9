"""The broker role of a node: logs, replicas, coordinators and the broker's lifecycle at the controller.

Start: lock the log directories, load the logs as the metadata requires, register, accept clients, unfence.
Stop is the reverse: give up leaderships, stop background work, flush the logs and mark them clean.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from moldau.base.ids import TopicPartition, Uuid
from moldau.config.tiered import refuse_tiered_topics
from moldau.controller.partitions.isr import alter_partition
from moldau.metadata.delta import MetadataDelta
from moldau.metadata.image import MetadataImage
from moldau.network.connection import Connection
from moldau.replication.local_broker import LocalBroker
from moldau.replication.replica_manager import ReplicaManager
from moldau.server.brokers.directory_assignments import DirectoryAssignments
from moldau.server.brokers.lifecycle import BrokerLifecycle
from moldau.server.brokers.producer_ids import ProducerIds
from moldau.server.controller.calls import ALTER_PARTITION
from moldau.server.coordinators.coordinators import Coordinators
from moldau.server.partitions.fetch_sessions import FetchSessionCache
from moldau.server.services import NodeServices
from moldau.server.share.settings import ShareGroupConfigs
from moldau.server.share.share_partition_manager import SharePartitionManager
from moldau.server.startup.folders import NodeFolders
from moldau.server.tasks import Scheduler
from moldau.storage.cleaner.job import CleanerRunner
from moldau.storage.log.log import Log
from moldau.storage.manager.failures import DirectoryFailure
from moldau.storage.manager.manager import LogManager

if TYPE_CHECKING:
    from moldau.server.dispatch.tracing import RequestTracing
    from moldau.server.metrics.telemetry import ClientTelemetry
    from moldau.server.partitions.schema_validation import SchemaValidator
    from moldau.server.tiered.reads import RemoteReads
    from moldau.server.tiered.tiered_storage import TieredStorage

_SHUTDOWN_SECONDS = 30.0
#: Interval between checks of closed segments for damage.
_CHECK_INTERVAL_MS = 86_400_000


class Broker:
    def __init__(
        self,
        services: NodeServices,
        folders: NodeFolders,
        cleaner: CleanerRunner,
        on_fatal: Callable[[Exception], None],
    ) -> None:
        settings, config, controller = services.settings, services.settings.config, services.controller
        self.services = services
        self._on_fatal = on_fatal
        self._scheduler = Scheduler()
        #: Whether the applied metadata contains the registration of this process.
        self._registered = False
        self._unfenced = False
        self.logs = LogManager(
            services.disk,
            services.clock,
            services.pool,
            services.randomness,
            folders.log_directories,
            cleaner,
            settings=settings.log_manager_settings(),
            cleaner_settings=settings.cleaner_settings(),
            on_directory_failure=self._directory_failed,
            on_log_replaced=self._log_replaced,
        )
        self.lifecycle = BrokerLifecycle(
            services.identity,
            controller,
            services.metadata,
            cordoned=lambda: [each.id for each in self.logs.directories if each.cordoned and each.id],
        )
        self._directory_assignments = DirectoryAssignments(
            services.id, lambda: self.lifecycle.epoch, controller, services.tasks
        )
        self.replicas = ReplicaManager(
            LocalBroker(
                services.id,
                services.clock,
                lambda: settings.config,
                lambda: self.lifecycle.epoch,
                services.suspected_brokers.connection_lost,
            ),
            self.logs,
            settings.log_config,
            lambda request: controller.send(ALTER_PARTITION, request, alter_partition),
            services.connectors.brokers,
        )
        self.fetch_sessions = FetchSessionCache(
            services.clock, services.randomness, config["max.incremental.fetch.session.cache.slots"]
        )
        self.schemas = _schema_validator(services)
        #: None unless `traces.otlp.endpoint` is set.
        self.tracing = _request_tracing(services)
        #: The receiver of client telemetry; None unless `metrics.port` is set.
        self.telemetry: ClientTelemetry | None = None
        #: None unless `remote.log.storage.system.enable` is set; created with the logs.
        self.tiered: TieredStorage | None = None
        self.producer_ids = ProducerIds(services.id, lambda: self.lifecycle.epoch, controller)
        self.coordinators = Coordinators(services, self.replicas, self.producer_ids)
        self.share_group_configs = ShareGroupConfigs(settings, services.metadata)
        self.share_partitions = SharePartitionManager(
            self.replicas,
            self.coordinators.persister,
            self.share_group_configs,
            max_sessions=config.integer("group.share.max.share.sessions"),
            clock=services.clock,
            pool=services.pool,
        )

    # Start.

    async def load_logs(self, image: MetadataImage) -> None:
        """Load the logs of the replicas that `image` assigns to this broker."""
        node_id, settings = self.services.id, self.services.settings
        if not settings.config["remote.log.storage.system.enable"]:
            refuse_tiered_topics((topic, image.topic_config(topic)) for topic in image.topics.by_name)
        settings.update(image)
        self.apply_settings()

        def is_stray(topic_partition: TopicPartition, topic_id: Uuid | None) -> bool:
            topic = image.topics.by_name.get(topic_partition.topic)
            partition = topic.partitions.get(topic_partition.partition) if topic is not None else None
            recreated = topic is not None and topic_id is not None and topic.id != topic_id
            return partition is None or recreated or node_id not in partition.replicas

        await self.logs.load(lambda topic: settings.log_config(image, topic), is_stray)
        if settings.config["remote.log.storage.system.enable"]:
            self.tiered = await _tiered_storage(self.services, self.replicas, self.coordinators)

    @property
    def remote_reads(self) -> RemoteReads | None:
        """Reads from the remote tier; None without tiered storage."""
        return None if self.tiered is None else self.tiered.reads

    async def register(self) -> None:
        online = [each.id for each in self.logs.directories if each.online and each.id is not None]
        await self.lifecycle.register(
            online, self.logs.previous_broker_epoch, self._registration_timeout_seconds()
        )
        self.replicas.begin_fetching()

    async def unfence(self) -> None:
        await self.lifecycle.unfence(self._registration_timeout_seconds())
        self._unfenced = True
        if self.tiered is not None:
            self.tiered.start()
        self._schedule()
        self._directory_assignments.start()

    def _registration_timeout_seconds(self) -> float:
        return float(self.services.settings.config["initial.broker.registration.timeout.ms"]) / 1000

    def _schedule(self) -> None:
        settings = self.services.settings
        every, maintenance, checkpoints = self._scheduler.every, self.logs.upkeep, self.logs.checkpoints
        config = settings.config
        first = config["log.initial.task.delay.ms"]
        every(config["log.retention.check.interval.ms"], maintenance.retention, first_ms=first)
        # Closed segments are flushed soon after they are closed, even if `flush.ms` is checked rarely.
        every(min(config["log.flush.scheduler.interval.ms"], 1000), maintenance.flush_due)
        every(
            config["log.flush.offset.checkpoint.interval.ms"],
            checkpoints.write_recovery_points,
            first_ms=first,
        )
        every(
            config["log.flush.start.offset.checkpoint.interval.ms"],
            checkpoints.write_log_starts,
            first_ms=first,
        )
        every(config["replica.high.watermark.checkpoint.interval.ms"], checkpoints.write_high_watermarks)
        every(
            config["producer.id.expiration.check.interval.ms"],
            lambda: maintenance.expire_producers(settings.config["producer.id.expiration.ms"]),
        )
        every(max(1, config["replica.lag.time.max.ms"] // 2), self.replicas.shrink_isr)
        every(1000, maintenance.remove_deleted_files)
        every(1000, self.logs.moves.advance)
        every(1000, lambda: self._directory_assignments.add_result(self.replicas.open_again()))
        every(lambda: settings.config.integer("log.cleaner.backoff.ms"), self.logs.cleaner.clean_due)
        every(_CHECK_INTERVAL_MS, maintenance.check)
        every(config["broker.heartbeat.interval.ms"], self.lifecycle.heartbeat)
        self._schedule_coordinators()

    def _schedule_coordinators(self) -> None:
        every, config = self._scheduler.every, self.services.settings.config
        transactions, share = self.coordinators.transactions, self.coordinators.share
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
        if not self._registered:
            # Roles of an earlier registration do not apply: this process may have lost what qualified it.
            if not self._is_registered(image):
                return
            self._registered = True
            delta = MetadataDelta.between(MetadataImage.empty(), image)
        self._check_node_id(image)
        await self._directory_assignments.add_result(self.replicas.apply(delta, image))
        self.coordinators.apply(delta, image)
        self.share_partitions.apply(delta, image)
        if self.tiered is not None:
            self.tiered.apply(delta, image)
        node_id = self.services.id
        others_stop = any(
            each.in_controlled_shutdown and not each.fenced and each.id != node_id
            for each in image.cluster.brokers.values()
        )
        if others_stop and self._unfenced:
            self.services.tasks.start(self.lifecycle.report_applied(image))

    def _is_registered(self, image: MetadataImage) -> bool:
        broker = image.cluster.brokers.get(self.services.id)
        return broker is not None and broker.incarnation_id == self.services.identity.incarnation_id

    def _check_node_id(self, image: MetadataImage) -> None:
        """Fail if another process has registered with this id: two must not lead the same partitions."""
        node_id = self.services.id
        if node_id in image.cluster.brokers and not self._is_registered(image):
            raise RuntimeError(
                f"another process has registered with node.id={node_id} while this one was fenced; "
                "every node needs an id of its own"
            )

    def apply_settings(self) -> None:
        """Apply dynamic broker configs to the logs."""
        settings, logs = self.services.settings, self.logs
        logs.cleaner.settings = settings.cleaner_settings()
        logs.update_settings(settings.log_manager_settings())
        logs.directories.cordon(settings.cordoned_directories())
        if self.tiered is not None:
            self.tiered.apply_settings()

    def controller_changed(self) -> None:
        """Open a heartbeat connection to the new controller, which detects the end of this process by it."""
        if self._unfenced:
            self.services.tasks.start(self.lifecycle.heartbeat())

    def disconnected(self, connection: Connection) -> None:
        """End the share sessions of a connection, and forget the client that has pushed metrics on it."""
        self.share_partitions.disconnected(connection)
        if self.telemetry is not None:
            self.telemetry.disconnected(connection)

    def _log_replaced(self, topic_partition: TopicPartition, moved: Log) -> None:
        self._directory_assignments.add(self.replicas.log_replaced(topic_partition, moved))

    def _directory_failed(self, failure: DirectoryFailure) -> None:
        self.replicas.went_offline(failure.partitions)
        directory = next(each for each in self.logs.directories if each.path == failure.path)
        if failure.last:
            self._on_fatal(OSError(f"the last log directory has failed: {failure.reason}"))
        elif self._unfenced and directory.id is not None:
            self.services.tasks.start(self.lifecycle.directory_failed(directory.id))

    # Stop.

    async def controlled_shutdown(self) -> None:
        """Have the leaderships of this broker moved (`controlled.shutdown.enable`)."""
        if self._unfenced and self.services.settings.config["controlled.shutdown.enable"]:
            await self.lifecycle.controlled_shutdown(_SHUTDOWN_SECONDS)

    async def stop_replication(self) -> None:
        await self._scheduler.close()
        if self.tiered is not None:
            await self.tiered.close()
        await self.replicas.close()

    async def close(self) -> None:
        if self.schemas is not None:
            await self.schemas.close()
        await self.share_partitions.close()
        await self.coordinators.close()
        await self.logs.shutdown(self._last_epoch())
        if self.tracing is not None:
            # Last: an endpoint that is down takes seconds.
            await self.tracing.close()

    def _last_epoch(self) -> int:
        """Return the broker epoch up to which the logs are complete: of this registration or the previous."""
        if self.lifecycle.epoch >= 0:
            return self.lifecycle.epoch
        previous = self.logs.previous_broker_epoch
        return -1 if previous is None else previous


def _schema_validator(services: NodeServices) -> SchemaValidator | None:
    """Return the validator of schema ids if a schema registry is configured; it is imported only then."""
    config = services.settings.config
    if not config["confluent.schema.registry.url"]:
        return None
    from moldau.server.partitions.schema_validation import SchemaValidator

    return SchemaValidator.of(config, services.clock, services.pool)


async def _tiered_storage(
    services: NodeServices, replicas: ReplicaManager, coordinators: Coordinators
) -> TieredStorage:
    """Return tiered storage with its remote store; both are imported only here."""
    from moldau.server.tiered.settings import TieredSettings
    from moldau.server.tiered.tiered_storage import TieredStorage

    store = await services.pool.run(TieredSettings(lambda: services.settings.config).load_store)
    tiered = TieredStorage(services, replicas, coordinators.high_watermarks, store)
    # Before replicas fetch: their states are built from indexes.
    await services.pool.run(tiered.store.indexes.prepare)
    replicas.set_remote_state_builder(tiered.follower_state.build)
    return tiered


def _request_tracing(services: NodeServices) -> RequestTracing | None:
    """Return what records spans of requests if an endpoint is configured; it is imported only then."""
    config = services.settings.config
    if not config["traces.otlp.endpoint"]:
        return None
    from moldau.tracing.extra import needs_opentelemetry

    with needs_opentelemetry("traces.otlp.endpoint"):
        from moldau.server.dispatch.tracing import RequestTracing
    return RequestTracing.of(
        config, services.identity, services.metadata, services.clock, services.randomness, services.pool
    )
