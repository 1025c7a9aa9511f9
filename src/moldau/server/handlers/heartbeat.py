"""Heartbeat (key 12), versions 0 to 4: keeps the session of a member of a classic group alive.

- 1: throttle time
- 2: on quota violation the broker responds before throttling (KIP-219)
- 3: group instance id (KIP-345)
- 4: flexible

Requires READ on GROUP.
"""

from __future__ import annotations

from moldau.base.errors import ErrorCode, KafkaError
from moldau.groups.shard import GroupShard
from moldau.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from moldau.security.acl.permissions import READ_GROUP
from moldau.server.coordinators.coordinator import Coordinator
from moldau.server.coordinators.group_requests import requester
from moldau.server.dispatch.context import RequestContext


async def handle(
    groups: Coordinator[GroupShard], context: RequestContext, request: HeartbeatRequest
) -> HeartbeatResponse:
    if not context.allows(READ_GROUP, request.group_id):
        return HeartbeatResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if not request.group_id:
        return HeartbeatResponse(error_code=ErrorCode.INVALID_GROUP_ID)
    try:
        return await groups.write(
            request.group_id, lambda shard: shard.heartbeat(requester(context), request)
        )
    except KafkaError as error:
        # No session expires while the group is loading; the member may continue.
        loading = error.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return HeartbeatResponse(error_code=ErrorCode.NONE if loading else error.code)
