"""The other brokers as this node reaches them: where they are, and a connection to each.

`endpoint_of` is the one look-up: a listener of a broker that is there and not fenced. Every purpose keeps
`BrokerPeers` of its own, because answers on a connection come in the order of the requests. When the metadata
says that a broker is gone, fenced, or somewhere else, the connection to it is given up with everything under
way on it: whoever waits looks for the new leader instead of waiting for a time-out.
"""

from __future__ import annotations

from typing import Any

from moldau.base.errors import ErrorCode, KafkaError
from moldau.metadata.image import Endpoint, MetadataImage
from moldau.network.client import OpenConnection
from moldau.network.peer import Peer
from moldau.protocol.schema import Message
from moldau.server.publisher import MetadataPublisher
from moldau.server.settings import NodeSettings


def endpoint_of(image: MetadataImage, broker_id: int, listener: str) -> Endpoint | None:
    """Where a broker listens; None when it is not there, fenced, or without such a listener."""
    broker = image.cluster.brokers.get(broker_id)
    return broker.endpoint(listener) if broker is not None and not broker.fenced else None


class BrokerPeers:
    """Connections for one purpose, by broker; `purpose` becomes part of the client id."""

    def __init__(
        self,
        purpose: str,
        node_id: int,
        metadata: MetadataPublisher,
        settings: NodeSettings,
        open_connection: OpenConnection | None,
    ) -> None:
        self._client_id = f"broker-{node_id}-{purpose}"
        self._metadata = metadata
        self._settings = settings
        self._open_connection = open_connection
        self._peers: dict[int, Peer] = {}

    async def call(self, broker_id: int, request: Message) -> Any:
        """The answer; KafkaError when the broker cannot be reached or does not answer in time."""
        return await self._peer(broker_id).call(
            request, timeout_ms=self._settings.config["request.timeout.ms"]
        )

    def _peer(self, broker_id: int) -> Peer:
        endpoint = self._endpoint(self._metadata.image, broker_id)
        if endpoint is None:
            raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, f"broker {broker_id} is not there")
        peer = self._peers.get(broker_id)
        if peer is None or not _is_at(peer, endpoint):
            if peer is not None:
                peer.close()
            peer = Peer(
                endpoint.host,
                endpoint.port,
                client_id=self._client_id,
                connect_timeout_ms=self._settings.config["socket.connection.setup.timeout.ms"],
                open_connection=self._open_connection,
            )
            self._peers[broker_id] = peer
        return peer

    def apply(self, image: MetadataImage) -> None:
        """Give up connections to brokers that are not where they were."""
        for broker_id, peer in list(self._peers.items()):
            endpoint = self._endpoint(image, broker_id)
            if endpoint is None or not _is_at(peer, endpoint):
                self._peers.pop(broker_id).close()

    def close(self) -> None:
        for peer in self._peers.values():
            peer.close()
        self._peers.clear()

    def _endpoint(self, image: MetadataImage, broker_id: int) -> Endpoint | None:
        return endpoint_of(image, broker_id, self._settings.config.inter_broker_listener_name)


def _is_at(peer: Peer, endpoint: Endpoint) -> bool:
    return (peer.host, peer.port) == (endpoint.host, endpoint.port)
