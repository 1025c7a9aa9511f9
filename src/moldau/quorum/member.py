"""This node as a member of the metadata quorum: the rules (`raft`), and everything they ask for.

Every input goes through one actor: the rules take a step, then `settle` does what follows from it, in the
order that keeps the promises of the quorum: what must be remembered is on disk before anything is sent or
answered, records are synced before they count, and the image follows the high watermark. Only then comes the
next input.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from moldau.base.clock import Clock
from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.pool import Pool
from moldau.network.client import OpenConnection
from moldau.network.failures import NodeUnreachable
from moldau.network.peer import is_refused
from moldau.protocol.messages.fetch import FetchResponse
from moldau.protocol.schema import Message
from moldau.quorum.actor import Actor
from moldau.quorum.batches import leader_change, voter_records
from moldau.quorum.committed import CommittedMetadata, Waiting
from moldau.quorum.following import Following
from moldau.quorum.leading import NOT_ACTIVE, Leading
from moldau.quorum.loading import VoterChange, voter_changes
from moldau.quorum.messenger import Messenger
from moldau.quorum.metadata_log import MetadataLog
from moldau.quorum.settings import QuorumSettings
from moldau.quorum.state_file import StateFile
from moldau.raft.raft import Raft
from moldau.raft.types import Append, FollowerWork, Outgoing, Ready, Role, SnapshotChunk, Truncate
from moldau.raft.voters import VoterEndpoint
from moldau.storage.disk import LogDirectoryFailed

log = logging.getLogger(__name__)

R = TypeVar("R")
_NOTHING = Ready()
#: The pause after what the leader sent could not be taken, for want of room on the disk.
_RETRY_SECONDS = 1.0


class Member:
    """`leading` is None where there is no controller; such a node never leads."""

    def __init__(
        self,
        settings: QuorumSettings,
        rules: Raft,
        metadata_log: MetadataLog,
        committed: CommittedMetadata,
        leading: Leading | None,
        following: Following,
        state_file: StateFile,
        *,
        clock: Clock,
        pool: Pool,
        open_connection: OpenConnection | None,
        on_failure: Callable[[Exception], None],
    ) -> None:
        self.rules = rules
        #: Told that so many bytes are committed.
        self.on_committed: Callable[[int], None] = lambda size: None
        self.on_leader_change: list[Callable[[], None]] = []
        #: How far everything was committed by what the leader said last.
        self.leader_high_watermark = -1
        self._settings = settings
        self._log = metadata_log
        self._committed = committed
        self._leading = leading
        self._following = following
        self._state_file = state_file
        self._clock = clock
        self._pool = pool
        self._open_connection = open_connection
        self._actor = Actor(on_failure)
        self._messenger = Messenger(
            f"raft-client-{settings.node_id}",
            settings.request_timeout_ms,
            open_connection=open_connection,
            on_answer=self._on_answer,
            on_failure=self._on_failure,
            on_lost=self._on_lost,
        )
        #: The epoch that this node leads in; -1: it does not.
        self._led = -1
        self._known: tuple[object, ...] = ()
        self._news: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._changing: asyncio.Future[Message] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._write_posted = False
        self._strangers: set[VoterEndpoint] = set()
        self._probes: dict[asyncio.Task[None], None] = {}

    # What others use.

    def now_ms(self) -> float:
        return self._clock.monotonic() * 1000

    @property
    def news(self) -> asyncio.Future[None]:
        """Done when the log, what is committed, or who leads has changed since now."""
        return self._news

    @property
    def failed(self) -> bool:
        return self._actor.failed

    async def start(self) -> None:
        """The first step, which makes the only voter the leader; then the others are listened to."""
        await self.settle()
        self._actor.start()

    async def step(self, act: Callable[[float], R]) -> R:
        """Give the rules an input; what comes of it, when all that follows is done."""

        async def work() -> R:
            result = act(self.now_ms())
            await self.settle()
            return result

        return await self._actor.run(work)

    async def run(self, work: Callable[[], Awaitable[R]]) -> R:
        """Do something with the log between two inputs."""
        return await self._actor.run(work)

    async def change_voters(self, act: Callable[[float], Message | None]) -> Message:
        """A change of voters: its answer comes when it is done."""

        async def work() -> tuple[Message | None, asyncio.Future[Message] | None]:
            answer = act(self.now_ms())
            if answer is None:
                self._changing = asyncio.get_running_loop().create_future()
            changing = self._changing
            await self.settle()
            return answer, changing

        answer, changing = await self._actor.run(work)
        if answer is not None or changing is None:
            return answer or Message()
        return await changing

    async def close(self) -> None:
        """Give up leading, so that the others need not wait for a timeout, and end."""
        if not self._actor.failed:
            await self._actor.run(self._finish_writing)
            await self.step(self.rules.resign)
            await self._messenger.settled(self._settings.request_timeout_ms / 1000)
        if self._timer is not None:
            self._timer.cancel()
        await self._actor.close()
        for probe in list(self._probes):
            probe.cancel()
        await asyncio.gather(*self._probes, return_exceptions=True)
        await self._messenger.close()
        self._tell_news()

    # After every step.

    async def settle(self) -> None:
        """Do what the rules ask for, until they ask for nothing more."""
        while True:
            ready = self.rules.take_ready()
            if ready.persist is not None:
                await self._state_file.write(ready.persist, self.rules.kraft_version, self.rules.voters)
            acted = await self._follow_leadership()
            if ready.records:
                await self._append_control(ready.records)
            for outgoing in ready.requests:
                self._messenger.send(outgoing)
            if ready.answer is not None and self._changing is not None:
                if not self._changing.done():
                    self._changing.set_result(ready.answer)
                self._changing = None
            if not (await self._commit() or acted) and ready == _NOTHING:
                break
        self._notice()
        self._arm()

    async def _follow_leadership(self) -> bool:
        led = self.rules.epoch if self.rules.is_leader else -1
        if led == self._led:
            return False
        if self._led >= 0 and self._leading is not None:
            log.info("no longer leading the metadata quorum, now in epoch %d", self.rules.epoch)
            self._leading.end(KafkaError(ErrorCode.NOT_CONTROLLER, NOT_ACTIVE))
        self._led = led
        if led >= 0:
            voters = self.rules.epoch_start_voters
            messages: list[Message] = [
                leader_change(self._settings.node_id, self.rules.voters.ids, self.rules.granting_voters)
            ]
            if voters is not None:
                messages += voter_records(self.rules.kraft_version, voters)
            await self._append_control(messages)
        return True

    async def _append_control(self, messages: Sequence[Message]) -> None:
        leading = self._leading
        while leading is not None and leading.has_records:
            await self._write_group(leading)
        start = self._log.end_offset
        batch = self._log.append_control(messages, self.rules.epoch)
        if leading is not None:
            leading.skip(len(messages))
        try:
            await self._pool.run(self._log.flush)
        except LogDirectoryFailed:
            raise
        except KafkaError as error:
            self._log.cut(start)
            self._give_up(error)
            return
        self._committed.appended(Waiting.of(batch))
        self._note_voters(voter_changes(batch.control, batch.header.base_offset))
        self.rules.appended(self.now_ms())

    def _note_voters(self, changes: Sequence[VoterChange]) -> None:
        for change in changes:
            self.rules.voters_changed(change.offset, change.kraft_version, change.voters)

    def _give_up(self, error: KafkaError) -> None:
        """A leader that cannot write lets another one lead; a quorum of one has none."""
        if len(self.rules.voters.voters) < 2:
            raise error
        log.error("this node cannot write the metadata log and gives up leading: %s", error)
        self.rules.resign(self.now_ms())

    async def _commit(self) -> bool:
        high_watermark = self.rules.high_watermark
        advanced = high_watermark > self._committed.position
        if advanced:
            self.on_committed(await self._committed.advance(high_watermark))
            if self._leading is not None:
                self._leading.committed(high_watermark)
        if self._led >= 0 and self._leading is not None and not self._leading.is_active:
            return await self._activate(self._leading, high_watermark) or advanced
        return advanced

    async def _activate(self, leading: Leading, high_watermark: int) -> bool:
        if high_watermark <= self.rules.epoch_start_offset:
            return False
        await leading.activate(self.rules.kraft_version, self._wake_writer)
        log.info(
            "leading the metadata quorum in epoch %d from offset %d", self.rules.epoch, self._log.end_offset
        )
        return True

    def _notice(self) -> None:
        """Wake those who wait for news."""
        rules = self.rules
        leadership = (rules.leader_id, rules.epoch, self._leading is not None and self._leading.is_active)
        known = (leadership, self._log.end, self._committed.position, rules.high_watermark)
        if known == self._known:
            return
        before, self._known = self._known, known
        self._tell_news()
        if not before or before[0] != leadership:
            for callback in self.on_leader_change:
                callback()

    def _tell_news(self) -> None:
        news, self._news = self._news, asyncio.get_running_loop().create_future()
        if not news.done():
            news.set_result(None)

    # Writing, as the leader.

    def _wake_writer(self) -> None:
        if not self._write_posted:
            self._write_posted = True
            self._actor.post(self._write_groups)

    async def _write_groups(self) -> None:
        self._write_posted = False
        if self._leading is not None:
            while self._leading.has_records:
                await self._write_group(self._leading)
                await self.settle()

    async def _write_group(self, leading: Leading) -> None:
        try:
            await leading.write_group(self.rules.epoch)
        except LogDirectoryFailed:
            raise
        except KafkaError as error:
            if len(self.rules.voters.voters) < 2:
                leading.lose(error)
            else:
                leading.end(error)
                self._give_up(error)
            return
        self.rules.appended(self.now_ms())

    async def _finish_writing(self) -> None:
        if self._leading is not None:
            self._leading.refuse(KafkaError(ErrorCode.NOT_CONTROLLER, "The controller is shutting down."))
        await self._write_groups()

    # What comes from others.

    async def _on_answer(self, sent: Outgoing, answer: Message) -> None:
        self._warn_of_strangers(sent, answer)

        async def work() -> None:
            follow_up = self.rules.on_response(sent, answer, self.now_ms())
            await self.settle()
            if isinstance(answer, FetchResponse):
                self._note_high_watermark(answer)
            if follow_up is not None:
                await self._do(follow_up)
                await self.settle()

        self._actor.post(work)

    def _note_high_watermark(self, answer: FetchResponse) -> None:
        for topic in answer.responses:
            for partition in topic.partitions:
                if partition.error_code == ErrorCode.NONE:
                    self.leader_high_watermark = partition.high_watermark

    async def _do(self, work: FollowerWork) -> None:
        try:
            if isinstance(work, Append):
                self._note_voters(await self._following.append(work))
                self.rules.appended(self.now_ms())
            elif isinstance(work, Truncate):
                self._following.truncate(work)
                self.rules.truncated(self.now_ms())
            else:
                await self._store(work)
        except LogDirectoryFailed:
            raise
        except KafkaError as error:
            log.error("what the leader of the metadata quorum sent could not be taken: %s", error)
            asyncio.get_running_loop().call_later(_RETRY_SECONDS, self._do_again, work, self.rules.epoch)

    def _do_again(self, work: FollowerWork, epoch: int) -> None:
        async def again() -> None:
            if self.rules.epoch != epoch or self.rules.role is not Role.FOLLOWER:
                return
            if isinstance(work, Append):
                # Nothing was taken, so the next fetch asks for the same.
                self.rules.appended(self.now_ms())
            else:
                await self._do(work)
            await self.settle()

        self._actor.post(again)

    async def _store(self, chunk: SnapshotChunk) -> None:
        snapshot = await self._following.store(chunk)
        if snapshot is None:
            self.rules.chunk_stored(self.now_ms())
        else:
            self.rules.snapshot_loaded(self.now_ms(), snapshot.kraft_version, snapshot.voters)

    async def _on_failure(self, sent: Outgoing, error: KafkaError) -> None:
        async def work() -> None:
            self.rules.on_failure(sent, self.now_ms())
            if isinstance(error, NodeUnreachable) and error.refused:
                self._is_gone(sent.endpoint)
            await self.settle()

        self._actor.post(work)

    def _is_gone(self, endpoint: VoterEndpoint) -> None:
        leader = self.rules.leader_endpoint
        if leader is not None and (leader.host, leader.port) == (endpoint.host, endpoint.port):
            self.rules.leader_gone(self.now_ms())

    def _on_lost(self, endpoint: VoterEndpoint) -> None:
        """A process that is gone refuses a new connection; a slow network does not."""
        task = asyncio.create_task(self._probe(endpoint))
        self._probes[task] = None
        task.add_done_callback(lambda ended: self._probes.pop(ended, None))

    async def _probe(self, endpoint: VoterEndpoint) -> None:
        refused = await is_refused(endpoint.host, endpoint.port, open_connection=self._open_connection)
        if refused:
            await self.step(lambda _: self._is_gone(endpoint))

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

    # Time.

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        deadline = self.rules.next_deadline()
        if deadline is not None:
            delay_s = max(deadline - self.now_ms(), 1) / 1000
            self._timer = asyncio.get_running_loop().call_later(delay_s, self._tick)

    def _tick(self) -> None:
        self._timer = None

        async def work() -> None:
            self.rules.tick(self.now_ms())
            await self.settle()

        self._actor.post(work)
