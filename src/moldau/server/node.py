"""One node of a cluster: the wiring of all its parts, their start and their stop.

Every node takes part in the metadata quorum as a voter or an observer, has a channel to the active controller
and applies committed metadata. `process.roles` adds the broker (`broker.py`), or the controller with its
listener.

Start: bind the ports, read and lock the folders, serve the controller listeners, join the quorum and apply
its metadata, then register as a broker and accept clients. Stop is the reverse; the quorum stops last,
because controlled shutdown needs it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from moldau.base.clock import Clock
from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import Randomness, random_uuid
from moldau.base.json_log import event
from moldau.base.pool import Pool
from moldau.config.broker.config import BrokerConfig
from moldau.controller.controller import Controller
from moldau.metadata.delta import MetadataDelta
from moldau.metadata.image import MetadataImage
from moldau.network.connection import Connection
from moldau.network.connector import OpenConnection
from moldau.network.listener import OpenSockets
from moldau.quorum.metadata_quorum import MetadataQuorum
from moldau.quorum.settings import QuorumSettings
from moldau.security.acl.loading import load_authorizer
from moldau.server.authentication.connectors import NodeConnectors
from moldau.server.authentication.credentials import MetadataCredentials
from moldau.server.authentication.listeners import Authenticators
from moldau.server.authentication.login_counts import LoginCounts
from moldau.server.authentication.store_changes import StoreChanges
from moldau.server.authentication.tls import NodeTls
from moldau.server.broker import Broker
from moldau.server.brokers.suspected_brokers import SuspectedBrokers
from moldau.server.controller.calls import ControllerCalls
from moldau.server.controller.channel import ControllerChannel
from moldau.server.controller.failure_detector import BrokerFailureDetector
from moldau.server.controller.local import LocalController
from moldau.server.controller.mutations import ControllerMutations
from moldau.server.controller.registration import ControllerRegistration
from moldau.server.dispatch.apis import broker_handlers, controller_handlers
from moldau.server.dispatch.listeners import Listeners
from moldau.server.dispatch.throttle import Throttle
from moldau.server.loop_lag import LoopLag
from moldau.server.publisher import MetadataPublisher
from moldau.server.services import NodeServices
from moldau.server.settings import BROKER, CONTROLLER, NodeSettings, client_quotas, connection_limits
from moldau.server.startup.folders import NodeFolders, read_folders
from moldau.server.startup.identity import Identity
from moldau.server.tasks import BackgroundTasks, Scheduler
from moldau.storage.cleaner.job import CleanerRunner
from moldau.storage.directories.directory import LogDirectory
from moldau.storage.disk.disk import Disk

if TYPE_CHECKING:
    from moldau.server.metrics.service import NodeMetrics

logger = logging.getLogger(__name__)

_LOG_WAIT_SECONDS = 5.0
#: Interval between checks of key and trust stores for changes.
_STORES_CHECK_MS = 5_000


class Node:
    """A node. `start` may be called once, `stop` at any time after that, also if `start` failed."""

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
        self.failed = False
        #: Whether clients are served, and whether `stop` has begun.
        self.started = False
        self.stopping = False
        self.ports: dict[str, int] = {}
        #: The port of `/metrics`; -1 if it is not served.
        self.metrics_port = -1
        #: Of the broker's listeners; those of the controller have limits of their own, as in Kafka.
        self.limits = connection_limits(config)
        self.controller_limits = connection_limits(config)
        self.settings = NodeSettings(config, (self.limits, self.controller_limits))
        self._quotas = client_quotas(config)
        self.loop_lag = LoopLag(clock)
        self.publisher = MetadataPublisher(self._apply, self._fail)
        self._clock = clock
        self._randomness = randomness
        self._disk = disk
        self._pool = pool
        self._cleaner = cleaner
        self._on_fatal = on_fatal
        self.logins = LoginCounts()
        self._tls = NodeTls(config, self.logins)
        self._connectors = NodeConnectors.of(config, self._tls, open_connection)
        self._authorizer = load_authorizer(config.texts)
        self._tasks = BackgroundTasks()
        self._credentials = MetadataCredentials(config, randomness, pool, self._tasks)
        self._scheduler = Scheduler()
        self._listeners = Listeners(
            config,
            {BROKER: self.limits, CONTROLLER: self.controller_limits},
            open_sockets,
            self._tls,
            self._disconnected,
        )
        self._is_controller = CONTROLLER in config.process_roles
        self._was_active = False
        #: Set by `start`, all at once.
        self._services: NodeServices | None = None
        self._broker: Broker | None = None
        #: Set if the metadata log is outside the log directories and has to be locked separately.
        self._metadata_folder: LogDirectory | None = None
        #: None unless `metrics.port` is set.
        self._metrics: NodeMetrics | None = None

    # For tests, simulations and tools that run a node in their own process.

    @property
    def config(self) -> BrokerConfig:
        return self.settings.config

    @property
    def image(self) -> MetadataImage:
        """The metadata applied on this node."""
        return self.publisher.image

    @property
    def is_wired(self) -> bool:
        """Whether `start` has created all parts."""
        return self._services is not None

    @property
    def services(self) -> NodeServices:
        if self._services is None:
            raise RuntimeError(f"node {self.id} is not started")
        return self._services

    @property
    def broker(self) -> Broker:
        if self._broker is None:
            raise RuntimeError(f"node {self.id} is not started, or has no broker role")
        return self._broker

    @property
    def broker_role(self) -> Broker | None:
        """The broker of this node; None before `start` and on a node that is only a controller."""
        return self._broker

    @property
    def metadata(self) -> MetadataQuorum:
        return self.services.quorum

    @property
    def cluster_id(self) -> str:
        return self.services.identity.cluster_id

    # Start.

    async def start(self) -> None:
        if self.settings.config.integer("metrics.port") >= 0:
            await self._open_metrics()
        requests = None if self._metrics is None else self._metrics.requests
        await self._pool.run(self._tls.load)
        self.ports.update(self._listeners.bind())
        folders = await self._pool.run(
            read_folders, self._disk, self._clock, self._randomness, self.settings.config
        )
        services = self._wire(folders)
        broker = self._wire_broker(services, folders)
        registration = ControllerRegistration(services.identity, services.controller, self.publisher)
        self._services, self._broker = services, broker
        if self._metrics is not None:
            self._metrics.wired(services, broker)
        await self._lock_folders(folders)
        authenticators = self._authenticators()
        await self._listeners.accept(
            CONTROLLER, controller_handlers(services), authenticators, services.authorizer, requests=requests
        )
        await services.quorum.start()
        await self._apply_committed_metadata(services.quorum)
        if self._is_controller:
            await registration.ensure()
        if broker is not None:
            await broker.register()
        self._schedule(registration)
        self.loop_lag.start()
        if broker is not None:
            await self._listeners.accept(
                BROKER,
                broker_handlers(broker),
                authenticators,
                services.authorizer,
                Throttle(self._quotas, self._clock),
                requests,
            )
            await broker.unfence()
        self.started = True
        logger.info(
            "node %d of cluster %s is ready on %s",
            self.id,
            self.cluster_id,
            self.ports,
            extra=event("node.ready", node=self.id, cluster_id=self.cluster_id),
        )

    async def _open_metrics(self) -> None:
        """Serve metrics and health; imported here, so that a node without them costs as little as before."""
        from moldau.server.metrics.service import NodeMetrics

        self._metrics = NodeMetrics(self, self._pool, self._clock)
        self.metrics_port = await self._metrics.open()
        logger.info("metrics and health are served on port %d", self.metrics_port)

    def _wire(self, folders: NodeFolders) -> NodeServices:
        config, clock, pool = self.settings.config, self._clock, self._pool
        identity = Identity.of(config, folders.cluster_id, random_uuid(self._randomness), self.ports)
        controller = None
        if self._is_controller:
            controller = Controller(config, identity.cluster_id, self._randomness, identity.incarnation_id)
        quorum = MetadataQuorum(
            QuorumSettings.from_config(
                config, folders.metadata_directory_id, identity.cluster_id, identity.controller_endpoints
            ),
            controller,
            disk=self._disk,
            clock=clock,
            pool=pool,
            randomness=self._randomness,
            on_failure=self._fail,
            connector=self._connectors.controllers,
        )
        quorum.add_listener(self.publisher.announce)
        quorum.on_leader_change(self._controller_changed)
        local_controller = LocalController(quorum, controller, clock)
        calls = ControllerCalls(
            quorum,
            clock,
            node_id=self.id,
            connect_timeout_ms=config["socket.connection.setup.timeout.ms"],
            connector=self._connectors.controllers,
        )
        channel = ControllerChannel(
            local_controller,
            calls,
            self.publisher,
            ControllerMutations(self._quotas.mutations, clock),
            heartbeat_timeout_ms=config["broker.heartbeat.interval.ms"],
        )
        # Whether a broker responds does not depend on the login.
        probing = self._connectors.brokers.without_login()
        suspected = SuspectedBrokers(self.publisher, self.settings, clock, self._tasks, probing)
        return NodeServices(
            identity=identity,
            settings=self.settings,
            clock=clock,
            randomness=self._randomness,
            disk=self._disk,
            pool=pool,
            limits=self.limits,
            quotas=self._quotas,
            tasks=self._tasks,
            connectors=self._connectors,
            store_changes=StoreChanges(self.settings, self._tls, pool),
            authorizer=self._authorizer,
            quorum=quorum,
            metadata=self.publisher,
            local_controller=local_controller,
            controller=channel,
            suspected_brokers=suspected,
            failure_detector=BrokerFailureDetector(
                self.settings, quorum, local_controller, suspected, self._tasks, probing
            ),
        )

    def _wire_broker(self, services: NodeServices, folders: NodeFolders) -> Broker | None:
        if BROKER not in self.settings.config.process_roles:
            return None
        return Broker(services, folders, self._cleaner, self._fail)

    def _authenticators(self) -> Authenticators:
        return Authenticators(
            self.settings.config,
            self._tls,
            self._credentials,
            self._clock,
            self._pool,
            self._randomness,
            self.logins,
        )

    async def _lock_folders(self, folders: NodeFolders) -> None:
        """Lock the folders against other processes."""
        if self._broker is not None:
            await self._broker.logs.claim()
        metadata_log_dir = self.settings.config.metadata_log_dir
        if self._broker is None or metadata_log_dir not in folders.log_directories:
            metadata_folder = LogDirectory(self._disk, self._pool, metadata_log_dir)
            await self._pool.run(metadata_folder.claim)
            self._metadata_folder = metadata_folder

    async def _apply_committed_metadata(self, quorum: MetadataQuorum) -> None:
        """Wait for a leader and apply everything that it has committed."""
        config = self.settings.config
        log_wait = asyncio.create_task(self._log_wait(quorum))
        try:
            async with asyncio.timeout(self._leader_timeout_seconds()):
                await quorum.caught_up_with_leader()
        except TimeoutError:
            raise KafkaError(
                ErrorCode.REQUEST_TIMED_OUT,
                "no active controller was found within initial.broker.registration.timeout.ms="
                f"{config['initial.broker.registration.timeout.ms']}; are the controllers of "
                "controller.quorum.voters or controller.quorum.bootstrap.servers running?",
            ) from None
        finally:
            log_wait.cancel()
        self._load_users_and_acls(quorum)
        if self._broker is not None:
            await self._broker.load_logs(quorum.image)
        self.publisher.start()
        await self.publisher.caught_up()

    def _load_users_and_acls(self, quorum: MetadataQuorum) -> None:
        """Follow the committed users, tokens and ACLs; until then only super users are served.

        Both follow the quorum, not the publisher, which may wait for disks: an active controller authorizes
        before the logs of its broker are loaded, and a deleted user or permission ends at once.
        """
        image = quorum.image
        everything = MetadataDelta.between(MetadataImage.empty(), image)
        self._credentials.apply(everything, image)
        quorum.add_listener(self._credentials.apply)
        if self._authorizer is not None:
            self._authorizer.apply(everything, image)
            quorum.add_listener(self._authorizer.apply)
        elif image.acls:
            logger.warning("the metadata contains ACLs, but authorizer.class.name is not set: all is allowed")

    async def _log_wait(self, quorum: MetadataQuorum) -> None:
        """Log what a node that is not ready waits for."""
        while True:
            await asyncio.sleep(_LOG_WAIT_SECONDS)
            logger.info(
                "waiting for the metadata quorum: %s; its voters are %s",
                "there is no leader" if quorum.leader_id < 0 else f"the leader is node {quorum.leader_id}",
                quorum.voters.ids or "unknown",
                extra=event("node.waiting_for_quorum", node=self.id),
            )

    def _leader_timeout_seconds(self) -> float | None:
        """A controller has no timeout: the other nodes may be waiting for it."""
        if self._is_controller:
            return None
        return float(self.settings.config["initial.broker.registration.timeout.ms"]) / 1000

    def _schedule(self, registration: ControllerRegistration) -> None:
        every = self._scheduler.every
        every(1000, self._close_idle_connections)
        if self._is_controller:
            every(1000, self._run_controller_tasks)
            every(1000, registration.ensure)
        every(60_000, self.services.quorum.maintain)
        every(60_000, lambda: self._quotas.expire(int(self._clock.monotonic() * 1000)))
        if self._tls.is_used:
            every(_STORES_CHECK_MS, lambda: self._tls.refresh(self._pool))

    # Running.

    async def _apply(self, delta: MetadataDelta, image: MetadataImage) -> None:
        if delta.client_quotas_changed:
            self._apply_quotas(image)
        if delta.broker_configs_changed(self.id):
            self.settings.update(image)
            self._pool.resize(self.settings.config["background.threads"])
            await self._tls.apply(self.settings.config, self._pool)
            if self._broker is not None:
                self._broker.apply_settings()
        if self._broker is not None:
            await self._broker.apply(delta, image)
        if self._is_controller:
            self.services.failure_detector.apply(image)

    def _apply_quotas(self, image: MetadataImage) -> None:
        self._quotas.apply(image.client_quotas)
        self.limits.apply(image.client_quotas)
        self.controller_limits.apply(image.client_quotas)

    def _disconnected(self, connection: Connection) -> None:
        if self._broker is not None:
            self._broker.disconnected(connection)
        self.services.failure_detector.disconnected(connection)

    def _controller_changed(self) -> None:
        quorum = self.services.quorum
        was_active, self._was_active = self._was_active, quorum.is_active
        if self._was_active and not was_active:
            self.services.failure_detector.check_all()
        if self._broker is not None and quorum.leader_id >= 0:
            self._broker.controller_changed()

    def _close_idle_connections(self) -> None:
        now = asyncio.get_running_loop().time()
        self.limits.close_idle(now)
        self.controller_limits.close_idle(now)

    async def _run_controller_tasks(self) -> None:
        services = self.services
        try:
            while services.quorum.is_active and await services.local_controller.run_periodic_task():
                await asyncio.sleep(0)
        except KafkaError as error:
            # The new active controller continues.
            if error.code is not ErrorCode.NOT_CONTROLLER:
                raise

    def _fail(self, error: Exception) -> None:
        logger.critical("the node stops after a fatal error: %s", error, exc_info=error)
        self.failed = True
        self._on_fatal()

    # Stop.

    async def stop(self) -> None:
        """Stop, in reverse order, the parts that `start` has started."""
        self.stopping = True
        broker, services = self._broker, self._services
        if broker is not None and not self.failed:
            await broker.controlled_shutdown()
        await self._listeners.close(BROKER)
        self.loop_lag.stop()
        if broker is not None:
            await broker.stop_replication()
        await self._tasks.close()
        await self.publisher.close()
        if broker is not None:
            await broker.close()
        await self._scheduler.close()
        if services is not None:
            await services.quorum.close()
            services.controller.close()
        await self._listeners.close(CONTROLLER)
        if self._metadata_folder is not None:
            self._metadata_folder.release()
        if self._metrics is not None:
            await self._metrics.close()
        logger.info("node %d has stopped", self.id, extra=event("node.stopped", node=self.id))
