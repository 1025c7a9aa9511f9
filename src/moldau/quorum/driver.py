"""The driver of Raft on a node: passes inputs to the state machine and performs its effects.

All inputs go through one serial queue. After each, `process_ready` performs the effects in the order that
Raft's safety requires: state is stored before anything is sent or answered, records are synced before they
count, and the image follows the high watermark. Only then is the next input processed.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable
from typing import TypeVar

from moldau.base.clock import Clock
from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.log_throttle import LogThrottle
from moldau.network.connector import Connector
from moldau.network.failures import NodeUnreachable
from moldau.protocol.messages.fetch import FetchResponse
from moldau.protocol.schema import Message
from moldau.quorum.committed import CommittedMetadata
from moldau.quorum.errors import UnusableMetadata
from moldau.quorum.follower import QuorumFollower
from moldau.quorum.leader import NOT_ACTIVE, QuorumLeader
from moldau.quorum.metadata_log import MetadataLog
from moldau.quorum.quorum_state_file import QuorumStateFile
from moldau.quorum.serial_queue import SerialQueue
from moldau.quorum.settings import QuorumSettings
from moldau.quorum.transport import Transport
from moldau.raft.raft import Raft
from moldau.raft.types import Append, FollowerAction, OutboundRequest, Ready, Role, Truncate
from moldau.raft.voters import VoterEndpoint
from moldau.storage.disk.disk import LogDirectoryFailed

logger = logging.getLogger(__name__)

R = TypeVar("R")
_NOTHING = Ready()
#: The delay before an action of a follower is retried after an error.
_RETRY_SECONDS = 1.0


class RaftDriver:
    """`leader` is None on a node without a controller, which is never the leader.

    `on_committed` is called with the number of bytes that have been committed, `on_leader_change` when the
    leader, the epoch, or the activity of this node's controller changes.
    """

    def __init__(
        self,
        raft: Raft,
        metadata_log: MetadataLog,
        committed: CommittedMetadata,
        leader: QuorumLeader | None,
        follower: QuorumFollower,
        state_file: QuorumStateFile,
        settings: QuorumSettings,
        *,
        clock: Clock,
        connector: Connector,
        on_committed: Callable[[int], None],
        on_leader_change: Callable[[], None],
        on_failure: Callable[[Exception], None],
    ) -> None:
        self.raft = raft
        #: The leader's high watermark in the latest fetch response.
        self.leader_high_watermark = -1
        self._log = metadata_log
        self._committed = committed
        self._leader = leader
        self._follower = follower
        self._state_file = state_file
        self._clock = clock
        self._on_committed = on_committed
        self._on_leader_change = on_leader_change
        self._queue = SerialQueue(on_failure)
        self.transport = Transport(
            settings,
            connector,
            on_response=self._on_response,
            on_failure=self._on_request_failure,
            on_refused=self._on_connection_refused,
        )
        self._request_timeout_s = settings.request_timeout_ms / 1000
        self._write_scheduled = False
        self._voter_change: asyncio.Future[Message] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._known_state: tuple[object, ...] = ()
        self._next_change: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._leader_exit_logged = LogThrottle()

    def now_ms(self) -> float:
        return self._clock.monotonic() * 1000

    @property
    def next_change(self) -> asyncio.Future[None]:
        """Done at the next change of the log end, the high watermark or the leader."""
        return self._next_change

    @property
    def failed(self) -> bool:
        return self._queue.failed

    async def start(self) -> None:
        """Perform the first effects, which make the only voter the leader, and then accept inputs."""
        await self._process_ready()
        self._queue.start()

    async def close(self) -> None:
        """Resign, so that the other voters need not wait for the fetch timeout, and stop."""
        if self._leader is not None and self.raft.quorum.is_leader and not self.failed:
            await self._hand_over(self._leader)
        if self._timer is not None:
            self._timer.cancel()
        await self._queue.close()
        await self.transport.close()
        if self._leader is not None:
            self._leader.deactivate(KafkaError(ErrorCode.NOT_CONTROLLER, NOT_ACTIVE))
        self._notify_change()

    async def _hand_over(self, leader: QuorumLeader) -> None:
        """Resign within the request timeout: a full or hanging disk must not block the shutdown."""

        async def resign() -> None:
            leader.reject_new_requests(
                KafkaError(ErrorCode.NOT_CONTROLLER, "The controller is shutting down.")
            )
            await self._write_pending_records()
            self.raft.resign(self.now_ms())
            await self.process_ready()

        handover = asyncio.ensure_future(self._queue.run(resign))
        await asyncio.wait([handover], timeout=self._request_timeout_s)
        if not handover.cancel() and (error := handover.exception()) is not None:
            logger.error("could not resign from the metadata quorum before the shutdown: %s", error)
        await self.transport.drain()

    # Inputs.

    async def step(self, apply: Callable[[float], R]) -> R:
        """Pass one input to Raft; return its result after the effects are performed."""

        async def task() -> R:
            result = apply(self.now_ms())
            await self.process_ready()
            return result

        return await self._queue.run(task)

    async def run(self, task: Callable[[], Awaitable[R]]) -> R:
        """Run a task that uses the log between two inputs."""
        return await self._queue.run(task)

    async def change_voters(self, apply: Callable[[float], Message | None]) -> Message:
        """Start a voter change, and return its response when it is finished."""
        pending: asyncio.Future[Message] = asyncio.get_running_loop().create_future()

        async def task() -> None:
            now_ms = self.now_ms()
            # Finish an expired change first, or its response would be taken for that of this change.
            self.raft.tick(now_ms)
            await self.process_ready()
            response = apply(now_ms)
            if response is None:
                self._voter_change = pending
            else:
                pending.set_result(response)
            await self.process_ready()

        await self._queue.run(task)
        return await pending

    def _on_response(self, sent: OutboundRequest, response: Message) -> None:
        async def task() -> None:
            action = self.raft.on_response(sent, response, self.now_ms())
            if isinstance(response, FetchResponse):
                self._record_leader_high_watermark(response)
            await self.process_ready()
            if action is not None:
                await self._perform(action)
                await self.process_ready()

        self._queue.post(task)

    def _record_leader_high_watermark(self, response: FetchResponse) -> None:
        for topic in response.responses:
            for partition in topic.partitions:
                if partition.error_code == ErrorCode.NONE:
                    self.leader_high_watermark = partition.high_watermark

    def _on_request_failure(self, sent: OutboundRequest, error: KafkaError) -> None:
        async def task() -> None:
            self.raft.on_failure(sent, self.now_ms())
            if isinstance(error, NodeUnreachable) and error.refused:
                self._check_leader_exited(sent.endpoint)
            await self.process_ready()

        self._queue.post(task)

    def _on_connection_refused(self, endpoint: VoterEndpoint) -> None:
        async def task() -> None:
            self._check_leader_exited(endpoint)
            await self.process_ready()

        self._queue.post(task)

    def _check_leader_exited(self, refused: VoterEndpoint) -> None:
        """Report to Raft that the leader has exited, if it is the node that refuses connections."""
        leader = self.raft.quorum.leader_endpoint
        if leader is not None and (leader.host, leader.port) == (refused.host, refused.port):
            now_ms = self.now_ms()
            if self._leader_exit_logged.is_due(now_ms / 1000, self.raft.quorum.epoch):
                logger.info("the leader of the metadata quorum has exited: %s:%d", leader.host, leader.port)
            self.raft.leader_exited(now_ms)

    # Actions of a follower.

    async def _perform(self, action: FollowerAction) -> None:
        """Perform an action; an error other than a failed disk is retried."""
        try:
            if isinstance(action, Append):
                for change in await self._follower.append(action):
                    self.raft.voters_changed(*change)
                self.raft.appended(self.now_ms())
            elif isinstance(action, Truncate):
                self._follower.truncate(action)
                self.raft.truncated(self.now_ms())
            elif (snapshot := await self._follower.write_snapshot_chunk(action)) is None:
                self.raft.snapshot_chunk_written(self.now_ms())
            else:
                self.raft.snapshot_loaded(self.now_ms(), snapshot.kraft_version, snapshot.voters)
        except LogDirectoryFailed:
            raise
        except KafkaError as error:
            logger.error("the response of the metadata quorum's leader could not be applied: %s", error)
            asyncio.get_running_loop().call_later(
                _RETRY_SECONDS, self._retry, action, self.raft.quorum.epoch, error.code
            )

    def _retry(self, action: FollowerAction, epoch: int, error: ErrorCode) -> None:
        async def task() -> None:
            quorum = self.raft.quorum
            if quorum.epoch != epoch or quorum.role is not Role.FOLLOWER:
                # The action is obsolete; nothing was written, so the log ends where it did.
                self.raft.truncated(self.now_ms())
            elif isinstance(action, Append):
                # Nothing was appended, so the next fetch requests the same records.
                self.raft.appended(self.now_ms())
            elif error is ErrorCode.CORRUPT_MESSAGE:
                # Writing the same bytes again does not help; the leader may have another snapshot by now.
                self.raft.snapshot_rejected(self.now_ms())
            else:
                await self._perform(action)
            await self.process_ready()

        self._queue.post(task)

    # Effects.

    async def process_ready(self) -> None:
        """Perform Raft's effects until there are none left.

        An effect that fails is no result for the caller whose input caused it: it is half done, and this node
        must leave the quorum.
        """
        try:
            await self._process_ready()
        except LogDirectoryFailed:
            raise
        except KafkaError as error:
            raise UnusableMetadata(
                f"A decision of the metadata quorum cannot be applied: {error}."
            ) from error

    async def _process_ready(self) -> None:
        while True:
            ready = self.raft.take_ready()
            role_changed = await self._perform_effects(ready)
            if not (await self._advance_committed() or role_changed) and ready == _NOTHING:
                break
        self._detect_change()
        self._set_timer()

    async def _perform_effects(self, ready: Ready) -> bool:
        """Perform the effects in `ready`; whether this node became the leader or ceased to be."""
        role_changed = False
        quorum = self.raft.quorum
        if ready.persist is not None:
            await self._state_file.write(ready.persist, quorum.kraft_version, quorum.voters)
        if self._leader is not None:
            role_changed = await self._leader.follow_role()
            if ready.records:
                epoch = quorum.epoch
                await self._write_pending_records()
                if quorum.is_leader and quorum.epoch == epoch:
                    await self._leader.append_control(ready.records)
        for outbound in ready.requests:
            self.transport.send(outbound)
        if ready.voter_change_response is not None and self._voter_change is not None:
            if not self._voter_change.done():
                self._voter_change.set_result(ready.voter_change_response)
            self._voter_change = None
        return role_changed

    async def _advance_committed(self) -> bool:
        """Publish newly committed records and activate the controller; whether either happened."""
        high_watermark = self.raft.quorum.high_watermark
        advanced = high_watermark > self._committed.end_offset
        if advanced:
            self._on_committed(await self._committed.advance(high_watermark))
            if self._leader is not None:
                self._leader.high_watermark_advanced(high_watermark)
        activated = self._leader is not None and await self._leader.activate(
            self._schedule_write, lambda: self._queue.post(self.process_ready)
        )
        return activated or advanced

    def _schedule_write(self) -> None:
        if not self._write_scheduled:
            self._write_scheduled = True
            self._queue.post(self._write_pending_records)

    async def _write_pending_records(self) -> None:
        self._write_scheduled = False
        while self._leader is not None and self._leader.has_pending_records:
            await self._leader.write_pending_records()
            await self.process_ready()

    # Notifications and time.

    def _detect_change(self) -> None:
        quorum = self.raft.quorum
        is_active = self._leader is not None and self._leader.is_active
        leadership = (quorum.leader_id, quorum.epoch, is_active)
        progress = (self._committed.end_offset, quorum.high_watermark, self.leader_high_watermark)
        state = (leadership, self._log.end, progress)
        if state == self._known_state:
            return
        before, self._known_state = self._known_state, state
        self._notify_change()
        if not before or before[0] != leadership:
            self._on_leader_change()

    def _notify_change(self) -> None:
        change, self._next_change = self._next_change, asyncio.get_running_loop().create_future()
        if not change.done():
            change.set_result(None)

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        deadline = self.raft.next_deadline()
        if deadline is not None and deadline < math.inf:
            delay_s = max(deadline - self.now_ms(), 1) / 1000
            self._timer = asyncio.get_running_loop().call_later(delay_s, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None

        async def task() -> None:
            self.raft.tick(self.now_ms())
            await self.process_ready()

        self._queue.post(task)
