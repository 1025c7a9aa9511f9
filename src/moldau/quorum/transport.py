"""The quorum's network transport: sends Raft's requests and returns the responses to the driver.

Each node has two connections: one for fetches, which the leader holds until it has new records, and one for
all other requests, which must not queue after a fetch.

When a fetch connection breaks, the transport tries to connect again at once. A process that has exited
refuses the connection; a slow network does not.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, NamedTuple

from moldau.base.errors import ErrorCode, KafkaError
from moldau.network.client import ByteCounter
from moldau.network.connector import Connector
from moldau.network.peer import Peer, is_refused
from moldau.protocol.messages.api_versions import ApiVersionsRequest
from moldau.protocol.messages.fetch import FetchRequest
from moldau.protocol.messages.fetch_snapshot import FetchSnapshotRequest
from moldau.protocol.schema import Message
from moldau.quorum.settings import QuorumSettings
from moldau.raft.types import OutboundRequest
from moldau.raft.voters import VoterEndpoint

logger = logging.getLogger(__name__)


class ChannelCounts(NamedTuple):
    """Traffic between this node and the other members of the quorum."""

    requests: int = 0
    responses: int = 0
    bytes_sent: int = 0
    bytes_received: int = 0


class _ConnectionKey(NamedTuple):
    host: str
    port: int
    for_fetches: bool


class Transport:
    """`on_refused` is called when a fetch connection broke and the node refuses a new one."""

    def __init__(
        self,
        settings: QuorumSettings,
        connector: Connector,
        *,
        on_response: Callable[[OutboundRequest, Message], None],
        on_failure: Callable[[OutboundRequest, KafkaError], None],
        on_refused: Callable[[VoterEndpoint], None],
    ) -> None:
        self._settings = settings
        self._connector = connector
        self._on_response = on_response
        self._on_failure = on_failure
        self._on_refused = on_refused
        self._peers: dict[_ConnectionKey, Peer] = {}
        self._exchanges: dict[asyncio.Task[None], None] = {}
        self._probes: dict[asyncio.Task[None], None] = {}
        self._other_clusters: set[VoterEndpoint] = set()
        #: Requests sent, and responses received.
        self.requests = 0
        self.responses = 0
        self.bytes = ByteCounter()

    @property
    def counts(self) -> ChannelCounts:
        return ChannelCounts(self.requests, self.responses, self.bytes.sent, self.bytes.received)

    def send(self, outbound: OutboundRequest) -> None:
        self.requests += 1
        _start(self._exchange(outbound), self._exchanges)

    async def drain(self) -> None:
        """Wait until every request in flight has a result, up to the request timeout."""
        if self._exchanges:
            timeout_s = self._settings.request_timeout_ms / 1000
            await asyncio.wait(list(self._exchanges), timeout=timeout_s)

    async def close(self) -> None:
        tasks = [*self._probes, *self._exchanges]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for peer in self._peers.values():
            peer.close()

    async def _exchange(self, sent: OutboundRequest) -> None:
        try:
            response = await self._call(sent)
        except KafkaError as error:
            logger.debug("%s to %s failed: %s", type(sent.request).__name__, sent.endpoint, error)
            self._on_failure(sent, error)
        else:
            self.responses += 1
            self._check_cluster(sent, response)
            self._on_response(sent, response)

    async def _call(self, sent: OutboundRequest) -> Message:
        peer = self._peer(sent)
        if isinstance(sent.request, ApiVersionsRequest):
            # Every connection starts with ApiVersions.
            return (await peer.connection()).node
        response: Message = await peer.call(sent.request, timeout_ms=self._settings.request_timeout_ms)
        return response

    def _peer(self, sent: OutboundRequest) -> Peer:
        endpoint = sent.endpoint
        for_fetches = isinstance(sent.request, FetchRequest | FetchSnapshotRequest)
        key = _ConnectionKey(endpoint.host, endpoint.port, for_fetches)
        peer = self._peers.get(key)
        if peer is None:
            peer = self._peers[key] = Peer(
                endpoint.host,
                endpoint.port,
                client_id=f"raft-client-{self._settings.node_id}",
                connect_timeout_ms=self._settings.request_timeout_ms,
                connector=self._connector,
                on_lost=(lambda: self._on_disconnect(endpoint)) if for_fetches else None,
                counter=self.bytes,
            )
        return peer

    def _on_disconnect(self, endpoint: VoterEndpoint) -> None:
        _start(self._probe(endpoint), self._probes)

    async def _probe(self, endpoint: VoterEndpoint) -> None:
        if await is_refused(endpoint.host, endpoint.port, connector=self._connector):
            self._on_refused(endpoint)

    def _check_cluster(self, sent: OutboundRequest, response: Message) -> None:
        """Log once for each node that belongs to another cluster."""
        error = getattr(response, "error_code", ErrorCode.NONE)
        if error == ErrorCode.INCONSISTENT_CLUSTER_ID and sent.endpoint not in self._other_clusters:
            self._other_clusters.add(sent.endpoint)
            logger.error(
                "%s:%d does not belong to the cluster of this node (%s); check controller.quorum.voters and "
                "controller.quorum.bootstrap.servers",
                sent.endpoint.host,
                sent.endpoint.port,
                self._settings.cluster_id,
            )


def _start(work: Coroutine[Any, Any, None], tasks: dict[asyncio.Task[None], None]) -> None:
    task = asyncio.create_task(work)
    tasks[task] = None
    task.add_done_callback(lambda ended: tasks.pop(ended, None))
