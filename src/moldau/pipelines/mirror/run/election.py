"""Which of several processes with the same configuration mirrors a flow; the others stand by.

Processes are members of one group on the target, of a protocol type of its own. The leader of the group names
the active member, and keeps the one that is active. When it leaves or dies, the coordinator rebalances the
group, after `session.timeout.ms` at the latest, and another is named.

The election prevents that records are copied twice in vain; the delivery guarantees do not depend on it. So
availability comes first: a process that cannot reach the coordinator, or may not join the group, mirrors
without it, and an active process stops only when the group has named another.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping
from typing import Any, Final

from moldau.base.errors import ErrorCode, KafkaError
from moldau.client.wire.group_member import GroupMember, GroupMemberSettings
from moldau.pipelines.mirror.config.definitions import MirrorConfigError
from moldau.pipelines.mirror.config.flow import Flow

logger = logging.getLogger(__name__)

_PROTOCOL_TYPE: Final = "moldau-mirror"
_PROTOCOL: Final = "v0"
_ACTIVE: Final = "active"
_PAUSE_S: Final = 0.5
_LEAVE_TIMEOUT_S: Final = 1.0


class Election:
    """The membership of this process for one flow; `active` follows what the group decides."""

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self._session_timeout_ms: int = flow["session.timeout.ms"]
        self._interval_s: float = flow["heartbeat.interval.ms"] / 1000
        self._member = GroupMember(flow.target_settings("election"), self._member_settings())
        self._changed = asyncio.Condition()
        #: None until the group has decided.
        self._active: bool | None = None

    async def wait_for(self, active: bool) -> None:
        """Wait until this process is active, or stands by."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._active is active)

    async def decided(self) -> bool:
        """Wait until the group has decided, and return whether this process is active."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._active is not None)
        return self._active is True

    async def run(self) -> None:
        """Take part until cancelled; return if this process may not be a member."""
        try:
            await self._take_part()
        finally:
            await self._leave()

    async def _take_part(self) -> None:
        loop = asyncio.get_running_loop()
        decided_at = loop.time()
        while True:
            try:
                await self._set(await self._join())
                while await self._member.heartbeat():
                    await asyncio.sleep(self._interval_s)
                decided_at = loop.time()
            except KafkaError as error:
                if error.code is ErrorCode.INVALID_SESSION_TIMEOUT:
                    raise MirrorConfigError(
                        f"Cluster {self._flow.target} does not accept session.timeout.ms="
                        f"{self._session_timeout_ms}"
                    ) from error
                if error.code is ErrorCode.GROUP_AUTHORIZATION_FAILED:
                    await self._mirror_alone(error)
                    return
                logger.info("%s: the group of the mirror: %s", self._flow, error)
                if self._active is None and loop.time() > decided_at + self._session_timeout_ms / 1000:
                    await self._mirror_alone(error)
                await asyncio.sleep(_PAUSE_S)

    async def _join(self) -> bool:
        """Join the group and return whether this member is the active one."""
        metadata = json.dumps({_ACTIVE: self._active is True}).encode()
        joined = await self._member.join({_PROTOCOL: metadata})
        assignments: dict[str, bytes] = {}
        if joined.leader == joined.member_id:
            members = {each.member_id: bytes(each.metadata) for each in joined.members}
            assignments = dict.fromkeys(members, json.dumps({_ACTIVE: active_member(members)}).encode())
        return _decoded(await self._member.sync(assignments)).get(_ACTIVE) == self._member.id

    async def _mirror_alone(self, error: KafkaError) -> None:
        logger.warning(
            "%s: mirroring without a check for other processes of this flow: %s", self._flow, error
        )
        await self._set(True)

    async def _set(self, active: bool) -> None:
        async with self._changed:
            self._active = active
            self._changed.notify_all()

    async def _leave(self) -> None:
        try:
            await asyncio.wait_for(self._member.leave(), _LEAVE_TIMEOUT_S)
        except (KafkaError, TimeoutError) as error:
            logger.info("%s: the group of the mirror was not left: %s", self._flow, error)
        self._member.close()

    def _member_settings(self) -> GroupMemberSettings:
        return GroupMemberSettings(
            group_id=f"mm2-{self._flow.source}-{self._flow.target}-moldau",
            protocol_type=_PROTOCOL_TYPE,
            session_timeout_ms=self._session_timeout_ms,
            rebalance_timeout_ms=self._session_timeout_ms,
            inconsistent_protocol="other clients than mirrors.",
        )


def active_member(members: Mapping[str, bytes]) -> str:
    """Return the member to name: one that is active already, otherwise the first."""
    return min(members, key=lambda member: (not _decoded(members[member]).get(_ACTIVE), member))


def _decoded(data: bytes) -> dict[str, Any]:
    try:
        found = json.loads(data or b"{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
