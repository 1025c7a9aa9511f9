"""The group as a worker sees it: who leads, what this worker runs, and when it must join again.

How it works. A worker joins with what it runs; the leader of the group decides (`assignor`), and everyone
gets what to revoke and what to add. Revoked work is stopped, then the worker joins again, so that another can
start it. Heartbeats continue meanwhile. A change of the configured connectors or tasks makes every worker
join again.

A worker leads, and keeps its work, only while its lease is valid: the coordinator has answered within the
session timeout. A worker that was paused or disconnected for longer stops everything before it joins again.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple

from moldau.base.clock import Clock
from moldau.base.errors import ErrorCode, KafkaError
from moldau.client.wire.group_member import GroupMember, GroupMemberSettings
from moldau.client.wire.settings import ClientSettings
from moldau.http.errors import ApiError
from moldau.pipelines.connect.config.worker import COMPATIBLE, GroupSettings
from moldau.pipelines.connect.storage.config_state import ConfigState
from moldau.pipelines.connect.storage.types import TaskId
from moldau.pipelines.connect.worker.group.assignor import Assignor
from moldau.pipelines.connect.worker.group.protocol import (
    NO_ERROR,
    PROTOCOL_TYPE,
    PROTOCOLS,
    Assignment,
    InvalidState,
    MemberState,
    Work,
    decode_assignment,
    decode_state,
    encode_assignment,
    encode_state,
)
from moldau.protocol.messages.join_group import JoinGroupResponse

logger = logging.getLogger(__name__)

_PAUSE_S: Final = 0.25
_LEAVE_TIMEOUT_S: Final = 2.0
_SETTLE_S: Final = 20.0
_PERMANENT: Final = (ErrorCode.INCONSISTENT_GROUP_PROTOCOL, ErrorCode.GROUP_AUTHORIZATION_FAILED)
_STALE: Final = (
    "Cannot complete request momentarily due to stale configuration (typically caused by a concurrent config "
    "change)"
)


class Hooks(NamedTuple):
    """What the worker does in a rebalance."""

    #: Read the config topic to its end.
    catch_up: Callable[[], Awaitable[None]]
    #: Stop connectors and tasks, and return when they have stopped.
    revoke: Callable[[list[str], list[TaskId]], Awaitable[None]]
    #: Start what is assigned now.
    assigned: Callable[[], None]
    #: Called when this worker becomes the leader, before it decides anything, and when it no longer is.
    leading: Callable[[bool], Awaitable[None]]


class Membership:
    """Implements `assignment.Group`."""

    def __init__(
        self,
        client: ClientSettings,
        settings: GroupSettings,
        url: str,
        configs: ConfigState,
        hooks: Hooks,
        clock: Clock,
    ) -> None:
        self._member = GroupMember(client, _member_settings(settings))
        self._settings = settings
        self._url = url
        self._configs = configs
        self._hooks = hooks
        self._clock = clock
        self._assignor = Assignor(settings.max_delay_ms)
        self._owned = Work()
        self._leader: str | None = None
        self._leader_url: str | None = None
        self._leads = False
        #: The URL of the owner of every connector and task, if this worker leads.
        self._owners: dict[str | TaskId, str] = {}
        #: What was configured when this worker joined.
        self._joined_for = Work()
        self._rejoin = asyncio.Event()
        self._rejoin_at: float | None = None
        self._applying: asyncio.Task[None] | None = None
        self._stable = False
        self._running: asyncio.Task[None] | None = None

    # What the herder asks.

    @property
    def leads(self) -> bool:
        return self._leads and self._member.has_lease

    @property
    def leader_url(self) -> str | None:
        return None if self._leader_url == self._url and not self.leads else self._leader_url

    @property
    def generation(self) -> int:
        return self._member.generation

    @property
    def has_joined(self) -> bool:
        return self._leader_url is not None

    def owns_connector(self, name: str) -> bool:
        return name in self._owned.connectors

    def owns_task(self, task: TaskId) -> bool:
        return task in self._owned.tasks

    def owner_url(self, work: str | TaskId) -> str | None:
        return self._owners.get(work)

    def configs_changed(self) -> None:
        if self._configured() != self._joined_for:
            self._rejoin.set()

    async def settled(self) -> None:
        """Wait for the end of a rebalance; `ApiError` 409 if it takes long."""
        deadline = asyncio.get_running_loop().time() + _SETTLE_S
        while not (self._stable and not self._rejoin.is_set() and self._member.has_lease):
            if asyncio.get_running_loop().time() > deadline:
                raise ApiError(409, 409, _STALE)
            await asyncio.sleep(0.02)

    # The life of a member.

    def start(self) -> None:
        self._running = asyncio.create_task(self._run())

    async def failed(self) -> str:
        """Wait until this worker cannot be a member any more, and return the reason."""
        while self._running is None:
            await asyncio.sleep(_PAUSE_S)
        await asyncio.wait([self._running])
        return "stopped" if self._running.cancelled() else str(self._running.exception())

    async def close(self) -> None:
        """Leave the group; the worker has stopped everything before."""
        self._leads = self._stable = False
        for task in (self._running, self._applying):
            if task is not None:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
        with contextlib.suppress(KafkaError, TimeoutError, OSError):
            await asyncio.wait_for(self._member.leave(), _LEAVE_TIMEOUT_S)
        self._member.close()

    async def _run(self) -> None:
        while True:
            try:
                await self._join()
                await self._stay()
            except (KafkaError, InvalidState) as error:
                if isinstance(error, KafkaError) and error.code in _PERMANENT:
                    raise
                logger.warning("The group of the workers: %s", error)
                if not self._member.has_lease:
                    await self._abandon()
                await asyncio.sleep(_PAUSE_S)

    async def _join(self) -> None:
        self._stable = False
        self._rejoin.clear()
        self._rejoin_at = None
        await self._hooks.catch_up()
        if self._owned and not self._member.has_lease:
            await self._abandon()
        self._joined_for = self._configured()
        joined = await self._member.join(self._protocols())
        leads = joined.leader == joined.member_id
        assignments: dict[str, bytes] = {}
        if leads:
            if not self._leads:
                self._assignor.forget()
            assignments = await self._assign(joined)
        assignment = decode_assignment(await self._member.sync(assignments))
        self._applying = asyncio.create_task(self._apply(assignment, leads=leads))

    def _protocols(self) -> dict[str, bytes]:
        names = [COMPATIBLE] if self._settings.protocol == COMPATIBLE else list(PROTOCOLS)
        state = MemberState(self._url, self._configs.offset + 1, self._owned)
        return {name: encode_state(state, self._leader, self._leader_url, PROTOCOLS[name]) for name in names}

    async def _assign(self, joined: JoinGroupResponse) -> dict[str, bytes]:
        version = PROTOCOLS.get(joined.protocol_name or "", 1)
        members = {each.member_id: decode_state(bytes(each.metadata)) for each in joined.members}
        if any(state.offset > self._configs.offset + 1 for state in members.values()):
            await self._hooks.catch_up()
        configured = self._joined_for = self._configured()
        plan = self._assignor.assign(members, configured, self._clock.time_ms())
        self._owners = {}
        for member, state in members.items():
            work = (state.owned - plan.revoked[member]) | plan.assigned[member]
            self._owners |= dict.fromkeys([*work.connectors, *work.tasks], state.url)
        return {
            member: encode_assignment(
                Assignment(
                    NO_ERROR,
                    joined.member_id,
                    self._url,
                    self._configs.offset + 1,
                    plan.assigned[member],
                    plan.revoked[member],
                    plan.delay_ms,
                ),
                version,
            )
            for member in members
        }

    async def _apply(self, assignment: Assignment, *, leads: bool) -> None:
        """Stop what is revoked, and start what is added; heartbeats continue meanwhile."""
        if leads != self._leads:
            await self._hooks.leading(leads)
        self._leads = leads
        self._leader, self._leader_url = assignment.leader, assignment.leader_url
        revoked = assignment.revoked & self._owned
        self._owned -= assignment.revoked
        await self._hooks.revoke(sorted(revoked.connectors), sorted(revoked.tasks))
        while self._configs.offset + 1 < assignment.offset:
            await self._hooks.catch_up()
            await asyncio.sleep(0)
        if assignment.error != NO_ERROR:
            await self._hooks.catch_up()
            self._rejoin.set()
            return
        self._owned |= assignment.assigned
        if assignment.revoked:
            self._rejoin.set()
        if assignment.delay_ms > 0:
            self._rejoin_at = asyncio.get_running_loop().time() + assignment.delay_ms / 1000
        self._stable = True
        self._hooks.assigned()

    async def _stay(self) -> None:
        """Send heartbeats until the group must be joined again."""
        interval_s = self._settings.heartbeat_interval_ms / 1000
        loop = asyncio.get_running_loop()
        next_heartbeat = loop.time() + interval_s
        must_join = False
        while True:
            applied = self._applying is None or self._applying.done()
            if applied and self._applying is not None and not self._applying.cancelled():
                error = self._applying.exception()
                if error is not None:
                    raise error
            due = self._rejoin_at is not None and loop.time() >= self._rejoin_at
            if applied and (must_join or self._rejoin.is_set() or due):
                return
            if loop.time() >= next_heartbeat:
                must_join = not await self._member.heartbeat() or must_join
                next_heartbeat = loop.time() + interval_s
            await self._wait(next_heartbeat, applied=applied)

    async def _wait(self, until: float, *, applied: bool) -> None:
        """Wait for the next heartbeat, the time to join again, or a reason to do so."""
        loop = asyncio.get_running_loop()
        if self._rejoin_at is not None:
            until = min(until, self._rejoin_at)
        timeout = max(0.01, until - loop.time())
        if applied:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._rejoin.wait(), timeout)
        elif self._applying is not None:
            await asyncio.wait([self._applying], timeout=timeout)

    async def _abandon(self) -> None:
        """Stop everything: another worker may run it by now."""
        owned, self._owned = self._owned, Work()
        self._stable = False
        if self._leads:
            await self._hooks.leading(False)
        self._leads, self._leader_url = False, None
        if owned:
            logger.warning("This worker has lost its place in the group and stops its connectors and tasks")
            await self._hooks.revoke(sorted(owned.connectors), sorted(owned.tasks))

    def _configured(self) -> Work:
        return Work(frozenset(self._configs.connectors), frozenset(self._configs.all_tasks()))


def _member_settings(settings: GroupSettings) -> GroupMemberSettings:
    return GroupMemberSettings(
        group_id=settings.group_id,
        protocol_type=PROTOCOL_TYPE,
        session_timeout_ms=settings.session_timeout_ms,
        rebalance_timeout_ms=settings.rebalance_timeout_ms,
        inconsistent_protocol="other clients than Connect workers, or by workers with connect.protocol=eager"
        ": choose another group.id.",
    )
