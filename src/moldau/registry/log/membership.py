"""Membership in the group of the registry's instances: the requests of the classic group protocol.

The group coordinator knows which instances are alive; one member, the group's leader, assigns the leader of
the registry. This is a client of JoinGroup, SyncGroup, Heartbeat and LeaveGroup without any state but member
id and generation; `election` decides what follows from the results.
"""

from __future__ import annotations

import asyncio
from typing import Any

from moldau.base.errors import ErrorCode, KafkaError
from moldau.client.wire.cluster import Cluster
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
from moldau.registry.log.identity import (
    PROTOCOL,
    PROTOCOL_TYPE,
    Assignment,
    Identity,
    assign,
    decode_assignment,
    decode_identity,
    encode_identity,
)
from moldau.registry.log.settings import ElectionSettings

#: Since this version a member leaves in a list.
_LEAVE_IN_LIST_SINCE = 3
_MARGIN_MS = 5000
_NOT_A_MEMBER = {
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.ILLEGAL_GENERATION,
    ErrorCode.FENCED_INSTANCE_ID,
}


class Membership:
    def __init__(self, client: ClientSettings, settings: ElectionSettings) -> None:
        self._cluster = Cluster(client)
        self._settings = settings
        self._coordinator: int | None = None
        self._member_id = ""
        self._generation = -1
        #: When the last request was sent that restarted this member's session.
        self.contacted_at = float("-inf")

    async def join(self, identity: Identity) -> Assignment:
        """Join the group, take part in the assignment and return it; `KafkaError` if that failed."""
        joined = await self._join(identity)
        self._member_id, self._generation = joined.member_id, joined.generation_id
        assignments = []
        if joined.leader == joined.member_id:
            members = {each.member_id: decode_identity(bytes(each.metadata)) for each in joined.members}
            data = assign(members, sticky=self._settings.sticky).encode()
            assignments = [SyncGroupRequestAssignment(member_id=each, assignment=data) for each in members]
        request = SyncGroupRequest(
            group_id=self._settings.group,
            generation_id=self._generation,
            member_id=self._member_id,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=PROTOCOL,
            assignments=assignments,
        )
        sent_at = asyncio.get_running_loop().time()
        synced: SyncGroupResponse = await self._ask(request, self._settings.rebalance_timeout_ms)
        self._check(synced.error_code)
        self.contacted_at = sent_at
        return decode_assignment(bytes(synced.assignment))

    async def heartbeat(self) -> bool:
        """Report that this instance is alive; return False if the group rebalances and must be joined again.

        `KafkaError` if the coordinator could not be asked, or if this instance is no longer a member.
        """
        request = HeartbeatRequest(
            group_id=self._settings.group, generation_id=self._generation, member_id=self._member_id
        )
        sent_at = asyncio.get_running_loop().time()
        answer: HeartbeatResponse = await self._ask(request, self._settings.session_timeout_ms)
        if answer.error_code != ErrorCode.REBALANCE_IN_PROGRESS:
            self._check(answer.error_code)
        self.contacted_at = sent_at
        return not answer.error_code

    async def leave(self) -> None:
        """Leave the group, so that another instance leads at once."""
        if self._member_id:
            member_id, self._member_id = self._member_id, ""
            await self.remove(member_id, "shutdown")

    async def remove(self, member_id: str, reason: str = "it refuses connections") -> None:
        """Remove a member from the group; one that has left already is no error."""
        connection = await self._cluster.node_connection(await self._find())
        version = connection.version_for(APIS[LeaveGroupRequest.API_KEY])
        request = LeaveGroupRequest(group_id=self._settings.group)
        if version is not None and version >= _LEAVE_IN_LIST_SINCE:
            request.members = [MemberIdentity(member_id=member_id, reason=reason)]
        else:
            request.member_id = member_id
        await ask(self._cluster, connection, request)

    def close(self) -> None:
        self._cluster.close()

    @property
    def known(self) -> bool:
        """Whether the coordinator considers this instance a member, as far as is known."""
        return self._member_id != ""

    async def _join(self, identity: Identity) -> JoinGroupResponse:
        protocol = JoinGroupRequestProtocol(name=PROTOCOL, metadata=encode_identity(identity))
        while True:
            request = JoinGroupRequest(
                group_id=self._settings.group,
                session_timeout_ms=self._settings.session_timeout_ms,
                rebalance_timeout_ms=self._settings.rebalance_timeout_ms,
                member_id=self._member_id,
                protocol_type=PROTOCOL_TYPE,
                protocols=[protocol],
            )
            joined: JoinGroupResponse = await self._ask(request, self._settings.rebalance_timeout_ms)
            if joined.error_code != ErrorCode.MEMBER_ID_REQUIRED:
                self._check(joined.error_code)
                return joined
            self._member_id = joined.member_id

    async def _ask(self, request: Message, timeout_ms: int) -> Any:
        try:
            connection = await self._cluster.node_connection(await self._find())
            return await connection.call(request, timeout_ms=timeout_ms + _MARGIN_MS)
        except KafkaError:
            self._coordinator = None
            raise

    async def _find(self) -> int:
        if self._coordinator is None:
            self._coordinator = await coordinator_id(self._cluster, GROUP, self._settings.group)
        return self._coordinator

    def _check(self, error_code: int) -> None:
        if error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL:
            raise KafkaError(
                ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
                f"The group {self._settings.group} is in use by other clients than schema registries: choose "
                "another one with schema.registry.group.id.",
            )
        if error_code and ErrorCode.of(error_code) in _NOT_A_MEMBER:
            self._member_id, self._generation = "", -1
            raise error_of(error_code)
        if error_code:
            self._coordinator = None
        check(error_code)
