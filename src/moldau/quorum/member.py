"""This node as a member of the metadata quorum: the rules (`raft`), and everything they ask for.

Every input goes through one actor: the rules take a step, then `settle` does what follows from it, in the
order that keeps the promises of the quorum: what must be remembered is on disk before anything is sent or
answered, records are synced before they count, and the image follows the high watermark. Only then comes the
next input.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from moldau.base.clock import Clock
from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.pool import Pool
from moldau.network.client import OpenConnection
from moldau.protocol.schema import Message
from moldau.quorum.actor import Actor
from moldau.quorum.committed import CommittedMetadata
from moldau.quorum.correspondence import Correspondence
from moldau.quorum.errors import UnusableMetadata
from moldau.quorum.following import Following
from moldau.quorum.leader_duties import LeaderDuties
from moldau.quorum.leading import NOT_ACTIVE, Leading
from moldau.quorum.loading import VoterChange
from moldau.quorum.metadata_log import MetadataLog
from moldau.quorum.settings import QuorumSettings
from moldau.quorum.state_file import StateFile
from moldau.raft.raft import Raft
from moldau.raft.types import Ready
from moldau.storage.disk.disk import LogDirectoryFailed

log = logging.getLogger(__name__)

R = TypeVar("R")
_NOTHING = Ready()


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
        self.correspondence = Correspondence(self, following, settings, open_connection)
        self._log = metadata_log
        self._committed = committed
        self._leading = leading
        self._duties: LeaderDuties | None = None
        if leading is not None:
            self._duties = LeaderDuties(self, leading, metadata_log, committed, pool, settings.node_id)
        self._state_file = state_file
        self._clock = clock
        self._actor = Actor(on_failure)
        self._request_timeout_s = settings.request_timeout_ms / 1000
        self._known: tuple[object, ...] = ()
        self._news: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._changing: asyncio.Future[Message] | None = None
        self._timer: asyncio.TimerHandle | None = None

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
        await self._settle()
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

    def post(self, work: Callable[[], Awaitable[None]]) -> None:
        """Do something when it is its turn; nobody waits for it."""
        self._actor.post(work)

    async def change_voters(self, act: Callable[[float], Message | None]) -> Message:
        """A change of voters: its answer comes when it is done."""
        changing: asyncio.Future[Message] = asyncio.get_running_loop().create_future()

        async def work() -> None:
            now_ms = self.now_ms()
            # A change whose time is up is answered first, or its answer would be taken for that of this one.
            self.rules.tick(now_ms)
            await self.settle()
            answer = act(now_ms)
            if answer is None:
                self._changing = changing
            else:
                changing.set_result(answer)
            await self.settle()

        await self._actor.run(work)
        return await changing

    async def close(self) -> None:
        """Give up leading, so that the others need not wait for a timeout, and end."""
        if self._duties is not None and self.rules.is_leader and not self.failed:
            await self._hand_over(self._duties)
        if self._timer is not None:
            self._timer.cancel()
        await self._actor.close()
        await self.correspondence.close()
        if self._leading is not None:
            self._leading.end(KafkaError(ErrorCode.NOT_CONTROLLER, NOT_ACTIVE))
        self._tell_news()

    async def _hand_over(self, duties: LeaderDuties) -> None:
        """A disk that hangs or is full must not keep the node from ending."""
        handing = asyncio.ensure_future(self._actor.run(duties.finish))
        await asyncio.wait([handing], timeout=self._request_timeout_s)
        if not handing.cancel() and (error := handing.exception()) is not None:
            log.error("the metadata quorum was not left in order: %s", error)
        await self.correspondence.settled()

    # After every step.

    async def settle(self) -> None:
        """Do what the rules ask for, until they ask for nothing more. If something of it cannot be done, that
        is no answer to whoever asked for something: it is half done, and this node's part ends."""
        try:
            await self._settle()
        except LogDirectoryFailed:
            raise
        except KafkaError as error:
            raise UnusableMetadata(f"What the quorum decided could not be done: {error}.") from error

    async def _settle(self) -> None:
        while True:
            ready = self.rules.take_ready()
            acted = await self._act(ready)
            if not (await self._commit() or acted) and ready == _NOTHING:
                break
        self._notice()
        self._arm()

    async def _act(self, ready: Ready) -> bool:
        acted = False
        if ready.persist is not None:
            await self._state_file.write(ready.persist, self.rules.kraft_version, self.rules.voters)
        if self._duties is not None:
            acted = await self._duties.follow_role()
            if ready.records:
                await self._duties.append_control(ready.records)
        for outgoing in ready.requests:
            self.correspondence.send(outgoing)
        if ready.answer is not None and self._changing is not None:
            if not self._changing.done():
                self._changing.set_result(ready.answer)
            self._changing = None
        return acted

    async def _commit(self) -> bool:
        high_watermark = self.rules.high_watermark
        advanced = high_watermark > self._committed.position
        if advanced:
            self.on_committed(await self._committed.advance(high_watermark))
            if self._leading is not None:
                self._leading.committed(high_watermark)
        return (self._duties is not None and await self._duties.activate()) or advanced

    def note_voters(self, changes: Sequence[VoterChange]) -> None:
        """Records that name voters were appended."""
        for change in changes:
            self.rules.voters_changed(change.offset, change.kraft_version, change.voters)

    def _notice(self) -> None:
        """Wake those who wait for news."""
        rules = self.rules
        leadership = (rules.leader_id, rules.epoch, self._leading is not None and self._leading.is_active)
        progress = (self._committed.position, rules.high_watermark, self.correspondence.leader_high_watermark)
        known = (leadership, self._log.end, progress)
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

    # Time.

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        deadline = self.rules.next_deadline()
        if deadline is not None and deadline < math.inf:
            delay_s = max(deadline - self.now_ms(), 1) / 1000
            self._timer = asyncio.get_running_loop().call_later(delay_s, self._tick)

    def _tick(self) -> None:
        self._timer = None

        async def work() -> None:
            self.rules.tick(self.now_ms())
            await self.settle()

        self._actor.post(work)
