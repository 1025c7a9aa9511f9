"""Detects brokers whose process has ended, while this node is the active controller.

A broker sends its heartbeats on one connection. When that connection is closed, the controller connects to
the broker's inter-broker listener: if the connection is refused, the process has ended, and the broker is
fenced before its session expires. Any other outcome (accepted, timed out) changes nothing, and
`broker.session.timeout.ms` decides. A controller that becomes active has no heartbeat connections yet and
checks every broker once.

A refused connection counts only if this node reached the broker before in the same broker epoch. Kafka's
controllers never connect to brokers, so an advertised address may be unreachable from here. Every controller,
active or not, therefore connects to each broker once after it was unfenced.
"""

from __future__ import annotations

import asyncio
import logging

from moldau.base.errors import KafkaError
from moldau.base.json_log import event
from moldau.metadata.image import BrokerRegistration, Endpoint, MetadataImage
from moldau.network.connection import Connection
from moldau.network.connector import Connector
from moldau.network.peer import is_reached
from moldau.quorum.metadata_quorum import MetadataQuorum
from moldau.server.brokers.suspected_brokers import SuspectedBrokers
from moldau.server.controller.local import LocalController
from moldau.server.settings import NodeSettings
from moldau.server.tasks import BackgroundTasks

logger = logging.getLogger(__name__)

#: The delays of the attempts to reach an unfenced broker; an attempt is made only if those before failed.
_ATTEMPT_DELAYS_SECONDS = (0.0, 1.0, 4.0, 15.0)


class BrokerFailureDetector:
    def __init__(
        self,
        settings: NodeSettings,
        quorum: MetadataQuorum,
        local_controller: LocalController,
        suspected: SuspectedBrokers,
        tasks: BackgroundTasks,
        connector: Connector,
    ) -> None:
        self._settings = settings
        self._quorum = quorum
        self._local_controller = local_controller
        self._suspected = suspected
        self._tasks = tasks
        self._connector = connector
        self._node_id = settings.config.node_id
        self._heartbeat_connections: dict[Connection, int] = {}
        #: The broker epochs in which brokers were reached, or attempted, from here.
        self._reached: dict[int, int] = {}
        self._attempted: dict[int, int] = {}
        #: Brokers being checked after their connections were closed.
        self._checking: set[int] = set()

    # Reachable brokers.

    def apply(self, image: MetadataImage) -> None:
        """Connect to brokers that were unfenced since the last image."""
        for broker in image.cluster.brokers.values():
            if broker.id == self._node_id or broker.fenced or self._attempted.get(broker.id) == broker.epoch:
                continue
            self._attempted[broker.id] = broker.epoch
            self._tasks.start(self._reach(broker))

    async def _reach(self, broker: BrokerRegistration) -> None:
        for seconds in _ATTEMPT_DELAYS_SECONDS:
            await asyncio.sleep(seconds)
            if self._attempted.get(broker.id) != broker.epoch:
                return
            if await self._accepts_connections(broker):
                self._reached[broker.id] = broker.epoch
                return

    async def _accepts_connections(self, broker: BrokerRegistration) -> bool | None:
        """Return False if the connection is refused, None if that cannot be determined."""
        endpoint = self._endpoint(broker)
        if endpoint is None:
            return None
        return await is_reached(endpoint.host, endpoint.port, connector=self._connector)

    def _endpoint(self, broker: BrokerRegistration) -> Endpoint | None:
        """Return the inter-broker endpoint of a broker, or its only endpoint."""
        named = broker.endpoint(self._settings.config.inter_broker_listener_name)
        only = broker.endpoints[0] if len(broker.endpoints) == 1 else None
        return named or only

    # Failed brokers.

    def heartbeat_received(self, connection: Connection, broker_id: int) -> None:
        self._heartbeat_connections[connection] = broker_id

    def disconnected(self, connection: Connection) -> None:
        broker_id = self._heartbeat_connections.pop(connection, None)
        if broker_id is not None:
            self._suspected.connection_lost(broker_id)
            self._check(broker_id)

    def check_all(self) -> None:
        """Check all brokers: this controller has become active."""
        for broker_id in self._quorum.image.cluster.brokers:
            if broker_id != self._node_id:
                self._check(broker_id)

    def _check(self, broker_id: int) -> None:
        broker = self._quorum.image.cluster.brokers.get(broker_id)
        if (
            broker is not None
            and not broker.fenced
            and self._reached.get(broker_id) == broker.epoch
            and broker_id not in self._checking
            and self._quorum.is_active
        ):
            self._checking.add(broker_id)
            self._tasks.start(self._fence_if_refused(broker))

    async def _fence_if_refused(self, broker: BrokerRegistration) -> None:
        try:
            if await self._accepts_connections(broker) is not False:
                return
        finally:
            self._checking.discard(broker.id)
        logger.warning(
            "broker %d refuses connections and is fenced",
            broker.id,
            extra=event("broker.fenced", broker=broker.id),
        )
        try:
            await self._local_controller.fence_broker(broker.id, broker.epoch)
        except KafkaError as error:
            logger.info("broker %d could not be fenced: %s", broker.id, error)
