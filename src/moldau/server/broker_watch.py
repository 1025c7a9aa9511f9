"""Brokers whose process has ended are noticed at once, while this node is the active controller.

A broker's heartbeats come on one connection. When that ends, the broker is tried where other brokers reach
it: if nobody listens there the process is gone, and it is fenced without waiting for the end of its session.
Whatever else happens (the connection can be made again, or nobody answers) changes nothing: then the session
timeout decides. A controller that becomes active has no connections to go by and tries every broker once.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from moldau.base.errors import KafkaError
from moldau.metadata.image import BrokerRegistration, Endpoint
from moldau.network.connection import Connection
from moldau.network.peer import is_refused

if TYPE_CHECKING:
    from moldau.server.node import Node

log = logging.getLogger(__name__)


class BrokerWatch:
    def __init__(self, node: Node) -> None:
        self._node = node
        self._brokers: dict[Connection, int] = {}

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
        if broker is not None and not broker.fenced and self._node.metadata.is_active:
            self._node.in_background(self._fence_if_gone(broker))

    async def _fence_if_gone(self, broker: BrokerRegistration) -> None:
        endpoint = self._endpoint(broker)
        if endpoint is None or not await is_refused(
            endpoint.host, endpoint.port, open_connection=self._node.open_connection
        ):
            return
        log.warning("broker %d is gone: %s:%d refuses connections", broker.id, endpoint.host, endpoint.port)
        try:
            await self._node.local_controller.broker_gone(broker.id, broker.epoch)
        except KafkaError as error:
            log.info("broker %d was not fenced here: %s", broker.id, error)

    def _endpoint(self, broker: BrokerRegistration) -> Endpoint | None:
        """Where other brokers reach it; any listener of one that has none of that name."""
        named = broker.endpoint(self._node.config.inter_broker_listener_name)
        return named or next(iter(broker.endpoints), None)
