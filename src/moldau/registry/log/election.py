"""Which instance of the registry leads: decided by the group, applied to the log.

How it works. Instances are members of one group. Its assignment names the leader, which keeps leading when
others join (`leader.election.sticky`). The instance that is named fences the log (`SchemaLog.lead`): it
becomes the only writer and replays what earlier leaders wrote, and leads only then.

An instance leads only while its lease is valid: the coordinator answered a heartbeat, or a join, within the
session timeout. A paused or disconnected leader thus stops deciding before another instance is named, also
if that is one of Confluent's, which does not fence ours. Between instances of ours the log is fenced as well
(`writer`), so that a leader that is paused between decision and write cannot write either.

A leader whose address refuses connections has ended. The instance that notices it, because it forwards a
write, removes it from the group (`replace`), so that writes need not wait for the session timeout.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from dataclasses import replace
from typing import Final

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.json_log import event
from moldau.client.wire.group_member import GroupMember, GroupMemberSettings
from moldau.client.wire.settings import ClientSettings
from moldau.registry.log.identity import (
    DUPLICATE_URLS,
    PROTOCOL,
    PROTOCOL_TYPE,
    Assignment,
    Identity,
    InvalidIdentity,
    assign,
    decode_assignment,
    decode_identity,
    encode_identity,
)
from moldau.registry.log.schema_log import SchemaLog
from moldau.registry.log.settings import ElectionSettings

logger = logging.getLogger(__name__)

_PAUSE_S: Final = 0.2
_LEAVE_TIMEOUT_S: Final = 1.0
_ELECTION_TIMEOUT_S: Final = 5.0
_REMOVE_AGAIN_S: Final = 10.0
_DUPLICATE: Final = (
    "Several instances of the registry announce the URL {}. Give each a host.name and listeners of its own."
)


class NotLeader(Exception):
    """This instance does not lead, so it must not decide about a write; `leader` is None if unknown."""

    def __init__(self, leader: Identity | None) -> None:
        super().__init__("This instance is not the leader of the registry.")
        self.leader = leader


class Election:
    def __init__(
        self, client: ClientSettings, settings: ElectionSettings, identity: Identity, log: SchemaLog
    ) -> None:
        self._member = GroupMember(client, _member_settings(settings))
        self._settings = settings
        self._identity = identity
        self._log = log
        #: The leader that the group has named.
        self._leader: Identity | None = None
        self._leader_member: str | None = None
        #: The last leader that was removed, and when.
        self._removed: tuple[str, float] = ("", float("-inf"))
        #: Whether the log is fenced for this instance.
        self._leads = False
        self._joined = False
        self._duplicate_since: float | None = None
        self._changed = asyncio.Event()
        self._wake = asyncio.Event()
        self._running: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._running = asyncio.create_task(self._run())

    @property
    def identity(self) -> Identity:
        return self._identity

    @property
    def leader(self) -> Identity | None:
        """The leader; None if the group has named none, or if this instance does not know it any more."""
        if self._leader is not None and self._identity.is_same(self._leader) and not self.leads:
            return None
        return self._leader

    @property
    def leads(self) -> bool:
        """Whether this instance may decide now."""
        return self._leads and self._member.has_lease

    async def require(self, timeout_s: float) -> None:
        """Return once this instance leads; `NotLeader` if another does, or none within `timeout_s`."""
        deadline = asyncio.get_running_loop().time() + timeout_s
        while not self.leads:
            leader = self.leader
            remaining = deadline - asyncio.get_running_loop().time()
            if leader is not None or remaining <= 0:
                raise NotLeader(leader)
            await self._change(min(remaining, _PAUSE_S))

    async def replace(self, leader: Identity) -> Identity | None:
        """Remove a leader that has ended from the group; return the next one, None if there is none in time.

        A leader that is alive, but announces an address that is not its own, is removed at most every ten
        seconds.
        """
        now = asyncio.get_running_loop().time()
        url, removed_at = self._removed
        member = self._leader_member
        if self._leader == leader and member and (url != leader.url or now - removed_at > _REMOVE_AGAIN_S):
            self._removed = (leader.url, now)
            logger.warning(
                "The leader %s refuses connections: it is removed from the group",
                leader.url,
                extra=event("registry.leader_removed", leader=leader.url),
            )
            try:
                await self._member.remove(member, "it refuses connections")
            except KafkaError as error:
                logger.info("The leader was not removed: %s", error, extra=event("registry.group_failed"))
            self._wake.set()
        return await self._next_after(leader, now + _ELECTION_TIMEOUT_S)

    async def _next_after(self, leader: Identity, deadline: float) -> Identity | None:
        try:
            await asyncio.wait_for(self.deposed(leader), deadline - asyncio.get_running_loop().time())
        except TimeoutError:
            return None
        return self._leader

    async def deposed(self, leader: Identity) -> None:
        """Wait until another instance than `leader` leads."""
        while self._leader == leader or not (self.leads or self.leader):
            await self._change(_PAUSE_S)

    async def _change(self, timeout_s: float) -> None:
        """Wait until the leader may have changed."""
        self._changed.clear()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._changed.wait(), timeout_s)

    def fenced(self) -> None:
        """A write was refused, or its result is unknown: stop leading, and lead again only after fencing."""
        self._leads = False
        self._wake.set()

    async def failed(self) -> str:
        """Wait until this instance cannot take part any more, and return the reason."""
        while self._running is None:
            await asyncio.sleep(_PAUSE_S)
        await asyncio.wait([self._running])
        return "stopped" if self._running.cancelled() else str(self._running.exception())

    async def close(self) -> None:
        self._leads = False
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)
        try:
            await asyncio.wait_for(self._member.leave(), _LEAVE_TIMEOUT_S)
        except (KafkaError, TimeoutError) as error:
            logger.info("The group was not left: %s", error, extra=event("registry.group_failed"))
        self._member.close()

    async def _run(self) -> None:
        while True:
            try:
                await self._join()
                await self._stay()
            except (KafkaError, InvalidIdentity) as error:
                if isinstance(error, KafkaError) and _is_permanent(error):
                    raise
                logger.warning("The group of the registry: %s", error, extra=event("registry.group_failed"))
                await asyncio.sleep(_PAUSE_S)

    async def _join(self) -> None:
        assignment = await self._assignment()
        if assignment.error == DUPLICATE_URLS:
            self._refuse_duplicate()
        self._joined = True
        await self._apply(assignment)

    async def _assignment(self) -> Assignment:
        """Join the group, choose the leader if this member leads the group, and return the assignment."""
        identity = replace(self._identity, leads=self._leads)
        joined = await self._member.join({PROTOCOL: encode_identity(identity)})
        assignments: dict[str, bytes] = {}
        if joined.leader == joined.member_id:
            members = {each.member_id: decode_identity(bytes(each.metadata)) for each in joined.members}
            assignments = dict.fromkeys(members, assign(members, sticky=self._settings.sticky).encode())
        return decode_assignment(await self._member.sync(assignments))

    def _refuse_duplicate(self) -> None:
        """Raise an error; it is permanent for an instance that has never joined.

        At first, the other member can be this instance before a crash, until its session expires.
        """
        now = asyncio.get_running_loop().time()
        self._duplicate_since = self._duplicate_since or now
        lasting = now - self._duplicate_since > 2 * self._settings.session_timeout_ms / 1000
        code = ErrorCode.REBALANCE_IN_PROGRESS if self._joined or not lasting else ErrorCode.INVALID_CONFIG
        raise KafkaError(code, _DUPLICATE.format(self._identity.url))

    async def _apply(self, assignment: Assignment) -> None:
        leader = assignment.leader
        if leader is None:
            logger.warning(
                "No instance of the registry is eligible as leader: schemas cannot be written",
                extra=event("registry.no_leader"),
            )
        self._leader, self._leader_member = leader, assignment.member_id
        if not self._identity.is_same(leader):
            self._leads = False
            self._log.resign()
        logger.info(
            "The leader of the registry is %s",
            "unknown" if leader is None else leader.url,
            extra=event("registry.leader"),
        )
        await self._lead_if_named()
        self._changed.set()

    async def _lead_if_named(self) -> None:
        if self._identity.is_same(self._leader) and not self._leads:
            await self._log.lead()
            self._leads = True
            self._changed.set()

    async def _stay(self) -> None:
        """Send heartbeats until the group must be joined again."""
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), self._settings.heartbeat_interval_ms / 1000)
            self._wake.clear()
            try:
                stable = await self._member.heartbeat()
            except KafkaError as error:
                self._lose(error)
                return
            if not stable:
                return
            await self._lead_if_named()

    def _lose(self, error: KafkaError) -> None:
        logger.warning(
            "This instance has left the group of the registry: %s",
            error,
            extra=event("registry.group_failed"),
        )
        self._leads, self._leader = False, None
        self._log.resign()


def _member_settings(settings: ElectionSettings) -> GroupMemberSettings:
    return GroupMemberSettings(
        group_id=settings.group,
        protocol_type=PROTOCOL_TYPE,
        session_timeout_ms=settings.session_timeout_ms,
        rebalance_timeout_ms=settings.rebalance_timeout_ms,
        inconsistent_protocol="other clients than schema registries: choose another one with "
        "schema.registry.group.id.",
    )


def _is_permanent(error: KafkaError) -> bool:
    return error.code in (
        ErrorCode.INVALID_CONFIG,
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
    )
