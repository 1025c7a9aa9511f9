"""LeaveGroup (key 13), versions 0 to 5: removes members from a classic group.

- 1: throttle time
- 2: on quota violation the broker responds before throttling (KIP-219)
- 3: several members, by member id or group instance id (KIP-345)
- 4: flexible
- 5: reason (KIP-800)

Requires READ on GROUP.
"""

from __future__ import annotations

from moldau.base.errors import ErrorCode, KafkaError
from moldau.groups.shard import GroupShard
from moldau.protocol.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
)
from moldau.security.acl.permissions import READ_GROUP
from moldau.server.coordinators.coordinator import Coordinator
from moldau.server.coordinators.group_requests import requester
from moldau.server.dispatch.context import RequestContext

_SEVERAL_SINCE = 3


async def handle(
    groups: Coordinator[GroupShard], context: RequestContext, request: LeaveGroupRequest
) -> LeaveGroupResponse:
    if not context.allows(READ_GROUP, request.group_id):
        return LeaveGroupResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if not request.group_id:
        return LeaveGroupResponse(error_code=ErrorCode.INVALID_GROUP_ID)
    if context.api_version >= _SEVERAL_SINCE:
        return await _leave(groups, context, request)
    request.members = [MemberIdentity(member_id=request.member_id)]
    response = await _leave(groups, context, request)
    code = response.error_code or next((each.error_code for each in response.members), 0)
    return LeaveGroupResponse(error_code=code)


async def _leave(
    groups: Coordinator[GroupShard], context: RequestContext, request: LeaveGroupRequest
) -> LeaveGroupResponse:
    try:
        return await groups.write(
            request.group_id, lambda shard: shard.leave_group(requester(context), request)
        )
    except KafkaError as error:
        if error.code is not ErrorCode.UNKNOWN_MEMBER_ID:
            return LeaveGroupResponse(error_code=error.code)
    return LeaveGroupResponse(
        members=[
            MemberResponse(
                member_id=each.member_id,
                group_instance_id=each.group_instance_id,
                error_code=ErrorCode.UNKNOWN_MEMBER_ID,
            )
            for each in request.members
        ]
    )
