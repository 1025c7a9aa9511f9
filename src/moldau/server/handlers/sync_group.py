"""SyncGroup (key 14), versions 0 to 5: a member fetches its assignment; the leader sends all assignments.

- 1: throttle time
- 2: on quota violation the broker responds before throttling (KIP-219)
- 3: group instance id (KIP-345)
- 4: flexible
- 5: protocol type and name (KIP-559)

Requires READ on GROUP.
"""

from __future__ import annotations

from moldau.base.errors import ErrorCode, KafkaError
from moldau.groups.shard import GroupShard
from moldau.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from moldau.security.acl.permissions import READ_GROUP
from moldau.server.coordinators.coordinator import Coordinator
from moldau.server.coordinators.group_requests import requester
from moldau.server.dispatch.context import RequestContext

#: The version from which the protocol type and name are required (KIP-559).
_PROTOCOL_SINCE = 5


async def handle(
    groups: Coordinator[GroupShard], context: RequestContext, request: SyncGroupRequest
) -> SyncGroupResponse:
    missing = request.protocol_type is None or request.protocol_name is None
    if missing and context.api_version >= _PROTOCOL_SINCE:
        return SyncGroupResponse(error_code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    if not context.allows(READ_GROUP, request.group_id):
        return SyncGroupResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if not request.group_id:
        return SyncGroupResponse(error_code=ErrorCode.INVALID_GROUP_ID)
    try:
        return await groups.write(
            request.group_id, lambda shard: shard.sync_group(requester(context), request)
        )
    except KafkaError as error:
        return SyncGroupResponse(error_code=error.code)
