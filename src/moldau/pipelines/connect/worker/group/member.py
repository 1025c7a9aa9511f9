"""A member of the group: JoinGroup, SyncGroup, Heartbeat and LeaveGroup, with member id and generation."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from moldau.base.errors import ErrorCode, KafkaError
from moldau.client.wire.cluster import Cluster
from moldau.client.wire.coordinators import GROUP, ask, coordinator_id
from moldau.client.wire.errors import check, error_of
from moldau.client.wire.settings import ClientSettings
from moldau.pipelines.connect.config.worker import GroupSettings
from moldau.pipelines.connect.worker.group.protocol import PROTOCOL_TYPE
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

#: Since this version a member leaves in a list.
_LEAVE_IN_LIST_SINCE: Final = 3
_MARGIN_MS: Final = 5000
_NOT_A_MEMBER: Final = {
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.ILLEGAL_GENERATION,
    ErrorCode.FENCED_INSTANCE_ID,
}


class Member:
    def __init__(self, client: ClientSettings, settings: GroupSettings) -> None:
        self._cluster = Cluster(client)
        self._settings = settings
        self._coordinator: int | None = None
        self._protocol: str | None = None
        self.id = ""
        self.generation = -1
        #: When the last request was sent that restarted this member's session.
        self.contacted_at = float("-inf")

    async def join(self, protocols: Mapping[str, bytes]) -> JoinGroupResponse:
        """Join with the metadata of each protocol, the preferred one first."""
        offered = [JoinGroupRequestProtocol(name=name, metadata=data) for name, data in protocols.items()]
        while True:
            request = JoinGroupRequest(
                group_id=self._settings.group_id,
                session_timeout_ms=self._settings.session_timeout_ms,
                rebalance_timeout_ms=self._settings.rebalance_timeout_ms,
                member_id=self.id,
                protocol_type=PROTOCOL_TYPE,
                protocols=offered,
            )
            joined: JoinGroupResponse = await self._ask(request, self._settings.rebalance_timeout_ms)
            if joined.error_code != ErrorCode.MEMBER_ID_REQUIRED:
                self._check(joined.error_code)
                break
            self.id = joined.member_id
        self.id, self.generation, self._protocol = (
            joined.member_id,
            joined.generation_id,
            joined.protocol_name,
        )
        return joined

    async def sync(self, assignments: Mapping[str, bytes]) -> bytes:
        """Send the assignments, if this member leads the group; return that of this member."""
        request = SyncGroupRequest(
            group_id=self._settings.group_id,
            generation_id=self.generation,
            member_id=self.id,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=self._protocol,
            assignments=[
                SyncGroupRequestAssignment(member_id=member, assignment=data)
                for member, data in assignments.items()
            ],
        )
        sent_at = asyncio.get_running_loop().time()
        synced: SyncGroupResponse = await self._ask(request, self._settings.rebalance_timeout_ms)
        self._check(synced.error_code)
        self.contacted_at = sent_at
        return bytes(synced.assignment)

    async def heartbeat(self) -> bool:
        """Report that this worker is alive; return False if the group rebalances and must be joined again."""
        request = HeartbeatRequest(
            group_id=self._settings.group_id, generation_id=self.generation, member_id=self.id
        )
        sent_at = asyncio.get_running_loop().time()
        answer: HeartbeatResponse = await self._ask(request, self._settings.session_timeout_ms)
        if answer.error_code != ErrorCode.REBALANCE_IN_PROGRESS:
            self._check(answer.error_code)
        self.contacted_at = sent_at
        return not answer.error_code

    async def leave(self) -> None:
        """Leave the group, so that others need not wait for the session timeout."""
        if not self.id:
            return
        member_id, self.id = self.id, ""
        connection = await self._cluster.node_connection(await self._find())
        version = connection.version_for(APIS[LeaveGroupRequest.API_KEY])
        request = LeaveGroupRequest(group_id=self._settings.group_id)
        if version is not None and version >= _LEAVE_IN_LIST_SINCE:
            request.members = [MemberIdentity(member_id=member_id, reason="shutdown")]
        else:
            request.member_id = member_id
        await ask(self._cluster, connection, request)

    def close(self) -> None:
        self._cluster.close()

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
                f"The group {self._settings.group_id} is in use by other clients than Connect workers, or by "
                "workers with connect.protocol=eager: choose another group.id.",
            )
        if error_code and ErrorCode.of(error_code) in _NOT_A_MEMBER:
            self.id, self.generation = "", -1
            raise error_of(error_code)
        if error_code:
            self._coordinator = None
        check(error_code)
