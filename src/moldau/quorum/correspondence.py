"""What this node sends to the rest of the quorum, and what it does about the answers.

Answers to fetches make work for a follower. Work that cannot be done for want of room is tried again. A
leader whose connection breaks is tried at once: a process that is gone refuses a new connection, a slow
network does not.
"""

from __future__ import annotations

import asyncio
import logging

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.log_throttle import Seldom
from moldau.network.client import OpenConnection
from moldau.network.failures import NodeUnreachable
from moldau.network.peer import is_refused
from moldau.protocol.messages.fetch import FetchResponse
from moldau.protocol.schema import Message
from moldau.quorum.following import Following
from moldau.quorum.messenger import Messenger
from moldau.quorum.settings import QuorumSettings
from moldau.quorum.turns import Turns
from moldau.raft.types import Append, FollowerWork, Outgoing, Role, SnapshotChunk, Truncate
from moldau.raft.voters import VoterEndpoint
from moldau.storage.disk.disk import LogDirectoryFailed

log = logging.getLogger(__name__)

#: The pause after what the leader sent could not be taken.
_RETRY_SECONDS = 1.0


class Correspondence:
    def __init__(
        self,
        turns: Turns,
        following: Following,
        settings: QuorumSettings,
        open_connection: OpenConnection | None,
    ) -> None:
        #: How far everything was committed by what the leader said last.
        self.leader_high_watermark = -1
        self._turns = turns
        self._rules = turns.rules
        self._following = following
        self._settings = settings
        self._open_connection = open_connection
        self._messenger = Messenger(
            f"raft-client-{settings.node_id}",
            settings.request_timeout_ms,
            open_connection=open_connection,
            on_answer=self._on_answer,
            on_failure=self._on_failure,
            on_lost=self._on_lost,
        )
        self._told_gone = Seldom()
        self._strangers: set[VoterEndpoint] = set()
        self._probes: dict[asyncio.Task[None], None] = {}

    def send(self, outgoing: Outgoing) -> None:
        self._messenger.send(outgoing)

    async def settled(self) -> None:
        """Until everything sent so far has come to something, or takes too long."""
        await self._messenger.settled(self._settings.request_timeout_ms / 1000)

    async def close(self) -> None:
        probes = list(self._probes)
        for probe in probes:
            probe.cancel()
        await asyncio.gather(*probes, return_exceptions=True)
        await self._messenger.close()

    # Answers.

    def _on_answer(self, sent: Outgoing, answer: Message) -> None:
        self._warn_of_strangers(sent, answer)

        async def work() -> None:
            follow_up = self._rules.on_response(sent, answer, self._turns.now_ms())
            if isinstance(answer, FetchResponse):
                self._note_high_watermark(answer)
            await self._turns.settle()
            if follow_up is not None:
                await self._do(follow_up)
                await self._turns.settle()

        self._turns.post(work)

    def _note_high_watermark(self, answer: FetchResponse) -> None:
        for topic in answer.responses:
            for partition in topic.partitions:
                if partition.error_code == ErrorCode.NONE:
                    self.leader_high_watermark = partition.high_watermark

    def _warn_of_strangers(self, sent: Outgoing, answer: Message) -> None:
        error = getattr(answer, "error_code", ErrorCode.NONE)
        if error == ErrorCode.INCONSISTENT_CLUSTER_ID and sent.endpoint not in self._strangers:
            self._strangers.add(sent.endpoint)
            log.error(
                "%s:%d belongs to another cluster than this node (%s); check controller.quorum.voters and "
                "controller.quorum.bootstrap.servers",
                sent.endpoint.host,
                sent.endpoint.port,
                self._settings.cluster_id,
            )

    # What a follower does about them.

    async def _do(self, work: FollowerWork) -> None:
        try:
            if isinstance(work, Append):
                self._turns.note_voters(await self._following.append(work))
                self._rules.appended(self._turns.now_ms())
            elif isinstance(work, Truncate):
                self._following.truncate(work)
                self._rules.truncated(self._turns.now_ms())
            else:
                await self._store(work)
        except LogDirectoryFailed:
            raise
        except KafkaError as error:
            log.error("what the leader of the metadata quorum sent could not be taken: %s", error)
            asyncio.get_running_loop().call_later(
                _RETRY_SECONDS, self._do_again, work, self._rules.epoch, error.code
            )

    def _do_again(self, work: FollowerWork, epoch: int, error: ErrorCode) -> None:
        async def again() -> None:
            if self._rules.epoch != epoch or self._rules.role is not Role.FOLLOWER:
                # Nothing was taken and nothing is wanted any more: the log ends where it did.
                self._rules.truncated(self._turns.now_ms())
            elif isinstance(work, Append):
                # Nothing was taken, so the next fetch asks for the same.
                self._rules.appended(self._turns.now_ms())
            elif error is ErrorCode.CORRUPT_MESSAGE:
                # Writing it once more makes it no better; by now the leader may have another one.
                self._rules.snapshot_refused(self._turns.now_ms())
            else:
                await self._do(work)
            await self._turns.settle()

        self._turns.post(again)

    async def _store(self, chunk: SnapshotChunk) -> None:
        snapshot = await self._following.store(chunk)
        if snapshot is None:
            self._rules.chunk_stored(self._turns.now_ms())
        else:
            self._rules.snapshot_loaded(self._turns.now_ms(), snapshot.kraft_version, snapshot.voters)

    # No answers.

    def _on_failure(self, sent: Outgoing, error: KafkaError) -> None:
        async def work() -> None:
            self._rules.on_failure(sent, self._turns.now_ms())
            if isinstance(error, NodeUnreachable) and error.refused:
                self._gone(sent.endpoint)
            await self._turns.settle()

        self._turns.post(work)

    def _on_lost(self, endpoint: VoterEndpoint) -> None:
        task = asyncio.create_task(self._probe(endpoint))
        self._probes[task] = None
        task.add_done_callback(lambda ended: self._probes.pop(ended, None))

    async def _probe(self, endpoint: VoterEndpoint) -> None:
        async def work() -> None:
            self._gone(endpoint)
            await self._turns.settle()

        if await is_refused(endpoint.host, endpoint.port, open_connection=self._open_connection):
            self._turns.post(work)

    def _gone(self, endpoint: VoterEndpoint) -> None:
        leader = self._rules.leader_endpoint
        if leader is not None and (leader.host, leader.port) == (endpoint.host, endpoint.port):
            now_ms = self._turns.now_ms()
            if self._told_gone.is_due(now_ms / 1000, self._rules.epoch):
                log.info("the leader of the metadata quorum is gone: %s:%d", leader.host, leader.port)
            self._rules.leader_gone(now_ms)
