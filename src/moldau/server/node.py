"""The node, wired by hand: every part is made here and handed what it needs.

Every node has folders, the metadata quorum (as a voter or as an observer), a way to the active controller,
and the publisher that puts committed metadata into place. What `process.roles` adds is in `broker_role.py`
and, for a controller, the listener that other nodes reach it at.

Start: take the ports, read and lock the folders, let other nodes in, join the quorum and follow its metadata,
then become a broker. Stop is the reverse; the quorum ends last: the broker's way out leads through it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from moldau.base.clock import Clock
from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import Randomness, random_uuid
from moldau.base.pool import Pool
from moldau.config.broker.config import BrokerConfig
from moldau.controller.controller import Controller
from moldau.metadata.delta import MetadataDelta
from moldau.metadata.image import MetadataImage
from moldau.network.client import OpenConnection
from moldau.network.connection import Connection
from moldau.network.listener import ConnectionLimits, OpenSockets
from moldau.quorum.metadata_quorum import MetadataQuorum
from moldau.quorum.settings import QuorumSettings
from moldau.replication.replica_manager import ReplicaManager
from moldau.server.background import Background
from moldau.server.broker import BrokerRole
from moldau.server.brokers.lifecycle import BrokerLifecycle
from moldau.server.brokers.suspects import Suspects
from moldau.server.controller.broker_watch import BrokerWatch
from moldau.server.controller.calls import ControllerCalls
from moldau.server.controller.channel import ControllerChannel
from moldau.server.controller.local import LocalController
from moldau.server.controller.registration import ControllerRegistration
from moldau.server.coordinators.coordinators import Coordinators
from moldau.server.dispatch.apis import ServedApi
from moldau.server.fetch_sessions import FetchSessionCache
from moldau.server.listeners import Listeners
from moldau.server.loop_lag import LoopLag
from moldau.server.node_settings import NodeSettings
from moldau.server.producer_ids import ProducerIds
from moldau.server.publisher import Publisher
from moldau.server.roles import BROKER, CONTROLLER
from moldau.server.scheduler import Scheduler
from moldau.server.share.share_partition_manager import SharePartitionManager
from moldau.server.startup.folders import NodeFolders, read_folders
from moldau.server.startup.identity import Identity
from moldau.storage.cleaner.job import CleanerRunner
from moldau.storage.directories.directory import LogDirectory
from moldau.storage.disk.disk import Disk
from moldau.storage.log_manager import LogManager

log = logging.getLogger(__name__)

_REMIND_SECONDS = 5.0


class Node:
    """One process of a cluster.

    `start` may be called once; what it makes (`metadata`, `logs`, `replicas`, …) is there from then on.
    """

    # What a broker has; a node that is only a controller has none of it.
    logs: LogManager
    replicas: ReplicaManager
    coordinators: Coordinators
    share: SharePartitionManager
    fetch_sessions: FetchSessionCache
    producer_ids: ProducerIds
    lifecycle: BrokerLifecycle

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
        self.clock = clock
        self.disk = disk
        self.pool = pool
        self.randomness = randomness
        #: How connections to other nodes are opened; None: as the loop does.
        self.open_connection = open_connection
        self.failed = False
        self.ports: dict[str, int] = {}
        self.cluster_id = ""
        self.limits = ConnectionLimits()
        self.settings = NodeSettings(config, self.limits)
        self.loop_lag = LoopLag(clock)
        self.publisher = Publisher(self._apply, self.fatal)
        self.broker_watch = BrokerWatch(self)
        self.suspects = Suspects(self)
        self._cleaner = cleaner
        self._on_fatal = on_fatal
        self._scheduler = Scheduler()
        self._listeners = Listeners(self, open_sockets)
        self._broker: BrokerRole | None = None
        #: Set when the metadata has a folder of its own, which then needs a lock of its own.
        self._metadata_folder: LogDirectory | None = None
        self._background = Background()
        self._was_active = False

    # What handlers ask.

    @property
    def config(self) -> BrokerConfig:
        """The configuration in force, dynamic changes included."""
        return self.settings.config

    @property
    def image(self) -> MetadataImage:
        """The metadata that is in place on this node."""
        return self.publisher.image

    def role_of(self, listener_name: str) -> str:
        return self._listeners.role_of(listener_name)

    def apis_of(self, listener_name: str) -> Mapping[int, ServedApi]:
        return self._listeners.apis_of(listener_name)

    def any_broker_id(self) -> int:
        """What clients are told is the controller: any broker, because brokers forward to it."""
        alive = [each.id for each in self.image.cluster.brokers.values() if not each.fenced]
        return self.id if self.id in alive else next(iter(alive), -1)

    # Start.

    async def start(self) -> None:
        self.ports.update(self._listeners.bind())
        folders = await self.pool.run(read_folders, self.disk, self.clock, self.randomness, self.config)
        self.cluster_id = folders.cluster_id
        self.identity = Identity.of(self.config, self.cluster_id, random_uuid(self.randomness), self.ports)
        await self._claim(folders)
        self._make_quorum(folders)
        await self._listeners.accept(CONTROLLER)
        await self.metadata.start()
        await self._follow_metadata()
        if CONTROLLER in self.config.process_roles:
            await self.controller_registration.ensure()
        if self._broker is not None:
            await self._broker.register()
        self._schedule()
        self.loop_lag.start()
        await self._listeners.accept(BROKER)
        if self._broker is not None:
            await self._broker.unfence()
        log.info("node %d of cluster %s is ready on %s", self.id, self.cluster_id, self.ports)

    async def _claim(self, folders: NodeFolders) -> None:
        """Make sure that nobody else uses the folders."""
        if BROKER in self.config.process_roles:
            self._broker = BrokerRole(self, folders, self._cleaner)
            await self.logs.claim()
        if self._broker is None or self.config.metadata_log_dir not in folders.log_directories:
            metadata_folder = LogDirectory(self.disk, self.pool, self.config.metadata_log_dir)
            await self.pool.run(metadata_folder.claim)
            self._metadata_folder = metadata_folder

    def _make_quorum(self, folders: NodeFolders) -> None:
        controller = None
        if CONTROLLER in self.config.process_roles:
            incarnation_id = self.identity.incarnation_id
            controller = Controller(self.config, self.cluster_id, self.randomness, incarnation_id)
        self.metadata = MetadataQuorum(
            QuorumSettings.from_config(
                self.config,
                folders.metadata_directory_id,
                self.cluster_id,
                self.identity.controller_endpoints,
            ),
            controller,
            disk=self.disk,
            clock=self.clock,
            pool=self.pool,
            randomness=self.randomness,
            on_failure=self.fatal,
            open_connection=self.open_connection,
        )
        self.metadata.add_listener(self.publisher.announce)
        self.metadata.on_leader_change(self._leader_changed)
        self.local_controller = LocalController(self.metadata, controller, self.clock)
        calls = ControllerCalls(
            self.metadata,
            self.clock,
            node_id=self.id,
            connect_timeout_ms=self.config["socket.connection.setup.timeout.ms"],
            open_connection=self.open_connection,
        )
        self.controller_channel = ControllerChannel(
            self.local_controller,
            calls,
            self.publisher,
            is_controller_listener=lambda name: self.role_of(name) == CONTROLLER,
            heartbeat_timeout_ms=self.config["broker.heartbeat.interval.ms"],
        )
        self.controller_registration = ControllerRegistration(
            self.identity, self.controller_channel, self.publisher
        )

    async def _follow_metadata(self) -> None:
        """Until there is a leader and everything it had committed is in place here."""
        reminder = asyncio.create_task(self._remind())
        try:
            async with asyncio.timeout(self._patience_seconds()):
                await self.metadata.caught_up_with_leader()
        except TimeoutError:
            raise KafkaError(
                ErrorCode.REQUEST_TIMED_OUT,
                "no active controller was found within initial.broker.registration.timeout.ms="
                f"{self.config['initial.broker.registration.timeout.ms']}; are the controllers of "
                "controller.quorum.voters or controller.quorum.bootstrap.servers running?",
            ) from None
        finally:
            reminder.cancel()
        if self.metadata.image.acls:
            log.warning("the metadata holds ACLs; without an authorizer they are kept and not enforced")
        if self._broker is not None:
            await self._broker.load_logs()
        self.publisher.start()
        await self.publisher.caught_up()

    async def _remind(self) -> None:
        """Whoever looks at a node that does not get ready should find out what it waits for."""
        while True:
            await asyncio.sleep(_REMIND_SECONDS)
            log.info(
                "waiting for the metadata quorum: %s; its voters are %s",
                "nobody leads" if self.metadata.leader_id < 0 else f"node {self.metadata.leader_id} leads",
                self.metadata.voters.ids or "not known",
            )

    def _patience_seconds(self) -> float | None:
        """A broker does not wait for ever; a controller may be the one the others wait for."""
        if CONTROLLER in self.config.process_roles:
            return None
        return float(self.config["initial.broker.registration.timeout.ms"]) / 1000

    def _schedule(self) -> None:
        every = self._scheduler.every
        every(1000, self._close_idle_connections)
        if CONTROLLER in self.config.process_roles:
            every(1000, self._run_periodic_tasks)
            every(1000, self.controller_registration.ensure)
        every(60_000, self.metadata.maintain)

    # Running.

    async def _apply(self, delta: MetadataDelta, image: MetadataImage) -> None:
        if delta.broker_configs_changed(self.id):
            self.settings.follow(image)
            self.pool.resize(self.config["background.threads"])
            if self._broker is not None:
                self._broker.follow_settings()
        if self._broker is not None:
            await self._broker.apply(delta, image)
        if CONTROLLER in self.config.process_roles:
            self.broker_watch.follow(image)

    def disconnected(self, connection: Connection) -> None:
        """Nothing outlives a connection but what the coordinators keep themselves."""
        if self._broker is not None:
            self.share.disconnected(connection)
        self.broker_watch.disconnected(connection)

    def _leader_changed(self) -> None:
        was_active, self._was_active = self._was_active, self.metadata.is_active
        if self._was_active and not was_active:
            self.broker_watch.try_all()
        if self._broker is not None and self.metadata.leader_id >= 0:
            self._broker.controller_changed()

    def _close_idle_connections(self) -> None:
        self.limits.close_idle(asyncio.get_running_loop().time())

    async def _run_periodic_tasks(self) -> None:
        try:
            while self.metadata.is_active and await self.local_controller.run_periodic_task():
                await asyncio.sleep(0)
        except KafkaError as error:
            # Whoever is active now goes on with it.
            if error.code is not ErrorCode.NOT_CONTROLLER:
                raise

    def fatal(self, error: Exception) -> None:
        log.critical("the node cannot go on: %s", error, exc_info=error)
        self.failed = True
        self._on_fatal()

    def in_background(self, work: Coroutine[Any, Any, None]) -> None:
        self._background.begin(work)

    # Stop.

    async def stop(self) -> None:
        """End in order whatever `start` got to."""
        if self._broker is not None and not self.failed:
            await self._broker.leave()
        await self._listeners.close(BROKER)
        self.loop_lag.stop()
        if self._broker is not None:
            await self._broker.end_work()
        await self._background.close()
        await self.publisher.close()
        if self._broker is not None:
            await self._broker.close()
        await self._scheduler.close()
        if hasattr(self, "metadata"):
            await self.metadata.close()
            self.controller_channel.close()
        await self._listeners.close(CONTROLLER)
        if self._metadata_folder is not None:
            self._metadata_folder.release()
