"""A member of a group of the classic protocol: JoinGroup, SyncGroup, Heartbeat and LeaveGroup.

Instances of one service use the group protocol to elect a leader and to share work: the registry's instances
(`sr`) and the workers of Kafka Connect (`connect`). This module sends the requests and keeps member id,
generation and lease; what metadata and assignments mean, and what follows from an error, is the caller's.

A member has a lease while the coordinator has answered within the session timeout. After that, the
coordinator may have removed it and given its work to another, so the caller must stop it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from moldau.base.errors import ErrorCode, KafkaError
from moldau.client.wire.cluster import Cluster, is_retriable
from moldau.client.wire.coordinators import GROUP, ask, coordinator_id
from moldau.client.wire.errors import check, error_of
from moldau.client.wire.settings import ClientSettings
from moldau.protocol.apis import APIS
from moldau.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from moldau.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from moldau.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from moldau.protocol.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from moldau.protocol.schema import Message

#: Since this version, LeaveGroup takes several members.
_LEAVE_IN_LIST_SINCE: Final = 3
_MARGIN_MS: Final = 5000
_PAUSE_S: Final = 0.25
_NOT_A_MEMBER: Final = {
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.ILLEGAL_GENERATION,
    ErrorCode.FENCED_INSTANCE_ID,
}


@dataclass(frozen=True, slots=True)
class GroupMemberSettings:
    group_id: str
    protocol_type: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    #: The end of the message of INCONSISTENT_GROUP_PROTOCOL, after "The group G is in use by": which clients
    #: may use it, and the setting that names another group.
    inconsistent_protocol: str


class GroupMember:
    def __init__(self, client: ClientSettings, settings: GroupMemberSettings) -> None:
        self._cluster = Cluster(client)
        self._settings = settings
        self._coordinator: int | None = None
        self._protocol: str | None = None
        #: Empty if this client is not a member.
        self.id = ""
        self.generation = -1
        #: The time of the last request that restarted this member's session.
        self._contacted_at = float("-inf")

    @property
    def has_lease(self) -> bool:
        """Whether the coordinator has answered within the session timeout."""
        session_timeout_s = self._settings.session_timeout_ms / 1000
        return asyncio.get_running_loop().time() < self._contacted_at + session_timeout_s

    async def join(self, protocols: Mapping[str, bytes]) -> JoinGroupResponse:
        """Join with the metadata of each protocol, the preferred one first."""
        offered = [JoinGroupRequestProtocol(name=name, metadata=data) for name, data in protocols.items()]
        while True:
            request = JoinGroupRequest(
                group_id=self._settings.group_id,
                session_timeout_ms=self._settings.session_timeout_ms,
                rebalance_timeout_ms=self._settings.rebalance_timeout_ms,
                member_id=self.id,
                protocol_type=self._settings.protocol_type,
                protocols=offered,
            )
            joined: JoinGroupResponse = await self._ask(request, self._settings.rebalance_timeout_ms)
            if joined.error_code != ErrorCode.MEMBER_ID_REQUIRED:
                self._check(joined.error_code)
                break
            self.id = joined.member_id
        self.id, self.generation = joined.member_id, joined.generation_id
        self._protocol = joined.protocol_name
        return joined

    async def sync(self, assignments: Mapping[str, bytes]) -> bytes:
        """Send the assignments, if this member leads the group; return that of this member."""
        request = SyncGroupRequest(
            group_id=self._settings.group_id,
            generation_id=self.generation,
            member_id=self.id,
            protocol_type=self._settings.protocol_type,
            protocol_name=self._protocol,
            assignments=[
                SyncGroupRequestAssignment(member_id=member, assignment=data)
                for member, data in assignments.items()
            ],
        )
        sent_at = asyncio.get_running_loop().time()
        synced: SyncGroupResponse = await self._ask(request, self._settings.rebalance_timeout_ms)
        self._check(synced.error_code)
        self._contacted_at = sent_at
        return bytes(synced.assignment)

    async def heartbeat(self) -> bool:
        """Report that this member is alive; return False if the group rebalances and must be joined again.

        Retry while the lease is valid. `KafkaError` if the coordinator did not answer until its end, or if
        this client is no longer a member.
        """
        while True:
            try:
                return await self._heartbeat()
            except KafkaError as error:
                if not self.id or not self.has_lease or not is_retriable(error):
                    raise
            await asyncio.sleep(_PAUSE_S)

    async def leave(self) -> None:
        """Leave the group, so that others need not wait for the session timeout."""
        if self.id:
            member_id, self.id = self.id, ""
            await self.remove(member_id, "shutdown")

    async def remove(self, member_id: str, reason: str) -> None:
        """Remove a member from the group; one that has already left is no error."""
        connection = await self._cluster.node_connection(await self._find())
        version = connection.version_for(APIS[LeaveGroupRequest.API_KEY])
        request = LeaveGroupRequest(group_id=self._settings.group_id)
        if version is not None and version >= _LEAVE_IN_LIST_SINCE:
            request.members = [MemberIdentity(member_id=member_id, reason=reason)]
        else:
            request.member_id = member_id
        await ask(self._cluster, connection, request)

    def close(self) -> None:
        self._cluster.close()

    async def _heartbeat(self) -> bool:
        request = HeartbeatRequest(
            group_id=self._settings.group_id, generation_id=self.generation, member_id=self.id
        )
        sent_at = asyncio.get_running_loop().time()
        answer: HeartbeatResponse = await self._ask(request, self._settings.session_timeout_ms)
        if answer.error_code != ErrorCode.REBALANCE_IN_PROGRESS:
            self._check(answer.error_code)
        self._contacted_at = sent_at
        return not answer.error_code

    async def _ask(self, request: Message, timeout_ms: int) -> Any:
        try:
            connection = await self._cluster.node_connection(await self._find())
            return await connection.call(request, timeout_ms=timeout_ms + _MARGIN_MS)
        except KafkaError:
            self._coordinator = None
            raise

    async def _find(self) -> int:
        if self._coordinator is None:
            self._coordinator = await coordinator_id(self._cluster, GROUP, self._settings.group_id)
        return self._coordinator

    def _check(self, error_code: int) -> None:
        if error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL:
            raise KafkaError(
                ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
                f"The group {self._settings.group_id} is in use by {self._settings.inconsistent_protocol}",
            )
        if error_code and ErrorCode.of(error_code) in _NOT_A_MEMBER:
            self.id, self.generation = "", -1
            raise error_of(error_code)
        if error_code:
            self._coordinator = None
        check(error_code)
