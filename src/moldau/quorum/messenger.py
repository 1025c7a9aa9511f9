"""Carries the quorum's requests to other nodes and brings the answers back.

Every node that is talked to has two connections: one for fetches, which wait for news at the other end, and
one for all else, which must not wait behind them. A fetch connection that breaks is reported, because it may
mean that the leader's process has ended.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import NamedTuple

from moldau.base.errors import KafkaError
from moldau.network.client import OpenConnection
from moldau.network.peer import Peer
from moldau.protocol.messages.api_versions import ApiVersionsRequest
from moldau.protocol.messages.fetch import FetchRequest
from moldau.protocol.messages.fetch_snapshot import FetchSnapshotRequest
from moldau.protocol.schema import Message
from moldau.raft.types import Outgoing
from moldau.raft.voters import VoterEndpoint

log = logging.getLogger(__name__)

OnAnswer = Callable[[Outgoing, Message], None]
OnFailure = Callable[[Outgoing, KafkaError], None]


class _Lane(NamedTuple):
    host: str
    port: int
    fetches: bool


class Messenger:
    def __init__(
        self,
        client_id: str,
        timeout_ms: int,
        *,
        open_connection: OpenConnection | None,
        on_answer: OnAnswer,
        on_failure: OnFailure,
        on_lost: Callable[[VoterEndpoint], None],
    ) -> None:
        self._client_id = client_id
        self._timeout_ms = timeout_ms
        self._open_connection = open_connection
        self._on_answer = on_answer
        self._on_failure = on_failure
        self._on_lost = on_lost
        self._peers: dict[_Lane, Peer] = {}
        self._tasks: dict[asyncio.Task[None], None] = {}

    def send(self, outgoing: Outgoing) -> None:
        task = asyncio.create_task(self._exchange(outgoing))
        self._tasks[task] = None
        task.add_done_callback(lambda ended: self._tasks.pop(ended, None))

    async def settled(self, timeout_s: float) -> None:
        """Until everything sent so far has come to something, or time is up."""
        if self._tasks:
            await asyncio.wait(list(self._tasks), timeout=timeout_s)

    async def close(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for peer in self._peers.values():
            peer.close()

    async def _exchange(self, sent: Outgoing) -> None:
        try:
            answer = await self._call(sent)
        except KafkaError as error:
            log.debug("%s to %s failed: %s", type(sent.request).__name__, sent.endpoint, error)
            self._on_failure(sent, error)
        else:
            self._on_answer(sent, answer)

    async def _call(self, sent: Outgoing) -> Message:
        peer = self._peer(sent)
        if isinstance(sent.request, ApiVersionsRequest):
            # Every connection begins with this question.
            return (await peer.connection()).node
        answer: Message = await peer.call(sent.request, timeout_ms=self._timeout_ms)
        return answer

    def _peer(self, sent: Outgoing) -> Peer:
        endpoint = sent.endpoint
        lane = _Lane(
            endpoint.host, endpoint.port, isinstance(sent.request, FetchRequest | FetchSnapshotRequest)
        )
        peer = self._peers.get(lane)
        if peer is None:
            peer = self._peers[lane] = Peer(
                endpoint.host,
                endpoint.port,
                client_id=self._client_id,
                connect_timeout_ms=self._timeout_ms,
                open_connection=self._open_connection,
                on_lost=(lambda: self._on_lost(endpoint)) if lane.fetches else None,
            )
        return peer
