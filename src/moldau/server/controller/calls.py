"""Calls to the active controller with retries: in this process if it is active here, else over the network.

The quorum knows the active controller. After NOT_CONTROLLER, a closed or a refused connection the call is
retried, after a short delay or as soon as the quorum has a new leader, until the timeout of the call. As in
Kafka, a request may therefore be executed twice.

Every purpose has its own connection, because responses are in the order of the requests: a heartbeat must not
wait for the creation of a topic with thousands of partitions.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

from moldau.base.clock import Clock
from moldau.base.errors import ErrorCode, KafkaError
from moldau.network.connector import PLAINTEXT, Connector
from moldau.network.peer import Peer
from moldau.protocol.messages.create_topics import CreateTopicsResponse
from moldau.protocol.schema import Message
from moldau.quorum.metadata_quorum import MetadataQuorum
from moldau.raft.voters import VoterEndpoint

R = TypeVar("R")

HEARTBEAT: Final = "heartbeat"
FORWARDING: Final = "forwarding"
ALTER_PARTITION: Final = "alter-partition"
DIRECTORY_ASSIGNMENTS: Final = "directory-assignments"
REGISTRATION: Final = "registration"

_RETRY_SECONDS = 0.05
_RETRIABLE = frozenset({ErrorCode.NOT_CONTROLLER, ErrorCode.NETWORK_EXCEPTION, ErrorCode.REQUEST_TIMED_OUT})


class ControllerCalls:
    def __init__(
        self,
        quorum: MetadataQuorum,
        clock: Clock,
        *,
        node_id: int,
        connect_timeout_ms: int,
        connector: Connector = PLAINTEXT,
    ) -> None:
        self._quorum = quorum
        self._clock = clock
        self._node_id = node_id
        self._connect_timeout_ms = connect_timeout_ms
        self._connector = connector
        self._peers: dict[str, Peer] = {}
        #: Set when the leader changes, and then replaced.
        self._new_leader = asyncio.Event()
        quorum.on_leader_change(self._leader_changed)

    async def call(
        self, purpose: str, request: Message, answer_here: Callable[[], Awaitable[R]], timeout_ms: int
    ) -> R:
        """Return the response of the active controller; `answer_here` does so if it runs in this process.

        An error about the whole request is a `KafkaError`, REQUEST_TIMED_OUT after `timeout_ms`.
        """
        deadline = self._clock.monotonic() + timeout_ms / 1000
        failure = KafkaError(ErrorCode.NOT_CONTROLLER, "there is no active controller")
        while (left := deadline - self._clock.monotonic()) > 0:
            new_leader = self._new_leader
            try:
                async with asyncio.timeout(left):
                    if self._quorum.is_active:
                        return await answer_here()
                    response: R = await self._send(purpose, request, left)
                    return response
            except TimeoutError:
                break
            except KafkaError as error:
                if error.code not in _RETRIABLE:
                    raise
                failure = error
            await _wait(new_leader, min(_RETRY_SECONDS, left))
        raise KafkaError(
            ErrorCode.REQUEST_TIMED_OUT,
            f"the active controller did not respond within {timeout_ms} ms: {failure}",
        )

    async def _send(self, purpose: str, request: Message, left: float) -> Any:
        endpoint = self._quorum.leader_endpoint
        if endpoint is None:
            raise KafkaError(ErrorCode.NOT_CONTROLLER, "there is no active controller")
        response = await self._peer(purpose, endpoint).call(request, timeout_ms=max(1, int(left * 1000)))
        if _is_from_inactive(response):
            raise KafkaError(
                ErrorCode.NOT_CONTROLLER, f"{endpoint.host}:{endpoint.port} is not the active controller"
            )
        return response

    def _peer(self, purpose: str, endpoint: VoterEndpoint) -> Peer:
        peer = self._peers.get(purpose)
        if peer is None or (peer.host, peer.port) != (endpoint.host, endpoint.port):
            if peer is not None:
                peer.close()
            peer = self._peers[purpose] = Peer(
                endpoint.host,
                endpoint.port,
                client_id=f"node-{self._node_id}-{purpose}",
                connect_timeout_ms=self._connect_timeout_ms,
                connector=self._connector,
            )
        return peer

    def _leader_changed(self) -> None:
        """Wake retrying calls and close connections to the former leader."""
        self._new_leader.set()
        self._new_leader = asyncio.Event()
        endpoint = self._quorum.leader_endpoint
        for purpose, peer in list(self._peers.items()):
            if endpoint is None or (peer.host, peer.port) != (endpoint.host, endpoint.port):
                del self._peers[purpose]
                peer.close()

    def close(self) -> None:
        for peer in self._peers.values():
            peer.close()
        self._peers.clear()


def _is_from_inactive(response: Any) -> bool:
    """Whether the response is NOT_CONTROLLER, which CreateTopics reports for each topic."""
    if isinstance(response, CreateTopicsResponse):
        return any(topic.error_code == ErrorCode.NOT_CONTROLLER for topic in response.topics)
    return bool(response.error_code == ErrorCode.NOT_CONTROLLER)


async def _wait(new_leader: asyncio.Event, seconds: float) -> None:
    """Wait for a new leader, at most `seconds`."""
    try:
        async with asyncio.timeout(seconds):
            await new_leader.wait()
    except TimeoutError:
        return
