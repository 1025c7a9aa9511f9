"""Connections to the other brokers.

`endpoint_of` looks up a listener of an unfenced broker. Every purpose has its own `BrokerPeers`, because the
responses of a connection are in the order of its requests. When the metadata shows that a broker is fenced,
unregistered or at another address, its connection is closed with all requests in flight, so that callers look
for the new leader instead of waiting for a timeout.
"""

from __future__ import annotations

from typing import Any

from moldau.base.errors import ErrorCode, KafkaError
from moldau.metadata.image import Endpoint, MetadataImage
from moldau.network.connector import Connector
from moldau.network.peer import Peer
from moldau.protocol.schema import Message
from moldau.server.publisher import MetadataPublisher
from moldau.server.settings import NodeSettings


def endpoint_of(image: MetadataImage, broker_id: int, listener: str) -> Endpoint | None:
    """Return the endpoint of a broker; None if it is unregistered, fenced, or has no such listener."""
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
        connector: Connector,
    ) -> None:
        self._client_id = f"broker-{node_id}-{purpose}"
        self._metadata = metadata
        self._settings = settings
        self._connector = connector
        self._peers: dict[int, Peer] = {}

    async def call(self, broker_id: int, request: Message) -> Any:
        """Return the response; raise KafkaError if the broker is unreachable or the request times out."""
        return await self._peer(broker_id).call(
            request, timeout_ms=self._settings.config["request.timeout.ms"]
        )

    def _peer(self, broker_id: int) -> Peer:
        endpoint = self._endpoint(self._metadata.image, broker_id)
        if endpoint is None:
            raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, f"broker {broker_id} is not available")
        peer = self._peers.get(broker_id)
        if peer is None or not _is_at(peer, endpoint):
            if peer is not None:
                peer.close()
            peer = Peer(
                endpoint.host,
                endpoint.port,
                client_id=self._client_id,
                connect_timeout_ms=self._settings.config["socket.connection.setup.timeout.ms"],
                connector=self._connector,
            )
            self._peers[broker_id] = peer
        return peer

    def apply(self, image: MetadataImage) -> None:
        """Close the connections to brokers that are fenced, unregistered or at another address."""
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
