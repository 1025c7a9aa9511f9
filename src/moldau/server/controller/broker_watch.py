"""Brokers whose process has ended are noticed at once, while this node is the active controller.

A broker's heartbeats come on one connection. When that ends, the broker is tried where other brokers reach
it: if nobody listens there the process is gone, and it is fenced without waiting for the end of its session.
Whatever else happens (the connection can be made again, or nobody answers) changes nothing: then the session
timeout decides. A controller that becomes active has no connections to go by and tries every broker once.

A refusal counts only where this node was let in before. Kafka's controllers never connect to brokers, so an
address may be one that means nothing here: of another network, of the clients' machine. That is why every
controller, active or not, tries each broker once when it begins to serve.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from moldau.base.errors import KafkaError
from moldau.metadata.image import BrokerRegistration, Endpoint, MetadataImage
from moldau.network.connection import Connection
from moldau.network.peer import is_reached

if TYPE_CHECKING:
    from moldau.server.node import Node

log = logging.getLogger(__name__)

#: When a broker that begins to serve is tried; the later ones only if nothing was heard.
_TRY_AFTER_SECONDS = (0.0, 1.0, 4.0, 15.0)


class BrokerWatch:
    def __init__(self, node: Node) -> None:
        self._node = node
        self._brokers: dict[Connection, int] = {}
        #: The broker epochs in which each was let in from here.
        self._reached: dict[int, int] = {}
        self._tried: dict[int, int] = {}
        #: Those that are being tried after their connections ended.
        self._suspected: dict[int, None] = {}

    # Who can be reached from here.

    def follow(self, image: MetadataImage) -> None:
        """The metadata in place on this node, which is a controller."""
        for broker in image.cluster.brokers.values():
            if broker.id == self._node.id or broker.fenced or self._tried.get(broker.id) == broker.epoch:
                continue
            self._tried[broker.id] = broker.epoch
            self._node.in_background(self._reach(broker))

    async def _reach(self, broker: BrokerRegistration) -> None:
        for seconds in _TRY_AFTER_SECONDS:
            await asyncio.sleep(seconds)
            if self._tried.get(broker.id) != broker.epoch:
                return
            if await self._is_there(broker):
                self._reached[broker.id] = broker.epoch
                return

    async def _is_there(self, broker: BrokerRegistration) -> bool | None:
        endpoint = self._endpoint(broker)
        if endpoint is None:
            return None
        return await is_reached(endpoint.host, endpoint.port, open_connection=self._node.open_connection)

    def _endpoint(self, broker: BrokerRegistration) -> Endpoint | None:
        """Where other brokers reach it."""
        named = broker.endpoint(self._node.config.inter_broker_listener_name)
        only = broker.endpoints[0] if len(broker.endpoints) == 1 else None
        return named or only

    # Who is gone.

    def heard(self, connection: Connection, broker_id: int) -> None:
        """A heartbeat came on this connection."""
        self._brokers[connection] = broker_id

    def disconnected(self, connection: Connection) -> None:
        broker_id = self._brokers.pop(connection, None)
        if broker_id is not None:
            self._node.suspects.lost(broker_id)
            self._try(broker_id)

    def try_all(self) -> None:
        """This controller has just become the active one."""
        for broker_id in self._node.metadata.image.cluster.brokers:
            if broker_id != self._node.id:
                self._try(broker_id)

    def _try(self, broker_id: int) -> None:
        broker = self._node.metadata.image.cluster.brokers.get(broker_id)
        if (
            broker is not None
            and not broker.fenced
            and self._reached.get(broker_id) == broker.epoch
            and broker_id not in self._suspected
            and self._node.metadata.is_active
        ):
            self._suspected[broker_id] = None
            self._node.in_background(self._fence_if_gone(broker))

    async def _fence_if_gone(self, broker: BrokerRegistration) -> None:
        try:
            if await self._is_there(broker) is not False:
                return
        finally:
            self._suspected.pop(broker.id, None)
        log.warning("broker %d is gone: it refuses connections", broker.id)
        try:
            await self._node.local_controller.fence_broker(broker.id, broker.epoch)
        except KafkaError as error:
            log.info("broker %d was not fenced here: %s", broker.id, error)
