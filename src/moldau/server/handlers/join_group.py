"""JoinGroup (key 11), versions 0 to 9: a member joins a classic group; the response is its next generation.

- 1: rebalance timeout (KIP-62)
- 2: throttle time
- 3: on quota violation the broker responds before throttling (KIP-219)
- 4: MEMBER_ID_REQUIRED (KIP-394)
- 5: group instance id (KIP-345)
- 6: flexible
- 7: protocol type in the response (KIP-559)
- 8: reason (KIP-800)
- 9: the leader may have to skip the assignment (KIP-814)

Requires READ on GROUP.
"""

from __future__ import annotations

from moldau.base.errors import ErrorCode, KafkaError
from moldau.groups.settings import GroupSettings
from moldau.groups.shard import GroupShard
from moldau.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from moldau.security.acl.permissions import READ_GROUP
from moldau.server.coordinators.coordinator import Coordinator
from moldau.server.coordinators.group_requests import requester
from moldau.server.dispatch.context import RequestContext
from moldau.server.settings import NodeSettings

_REBALANCE_TIMEOUT_SINCE = 1
#: Since this version a missing protocol name is null, before it is empty.
_NULL_PROTOCOL_SINCE = 7


async def handle(
    groups: Coordinator[GroupShard],
    settings: NodeSettings,
    context: RequestContext,
    request: JoinGroupRequest,
) -> JoinGroupResponse:
    if context.api_version < _REBALANCE_TIMEOUT_SINCE:
        request.rebalance_timeout_ms = request.session_timeout_ms
    response = await _join(groups, settings, context, request)
    missing = "" if context.api_version < _NULL_PROTOCOL_SINCE else None
    response.protocol_name = response.protocol_name or missing
    return response


async def _join(
    groups: Coordinator[GroupShard],
    settings: NodeSettings,
    context: RequestContext,
    request: JoinGroupRequest,
) -> JoinGroupResponse:
    if not context.allows(READ_GROUP, request.group_id):
        return JoinGroupResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    limits = GroupSettings.from_config(settings.config)
    if not request.group_id:
        return JoinGroupResponse(error_code=ErrorCode.INVALID_GROUP_ID, member_id=request.member_id)
    timeout_ms = request.session_timeout_ms
    if not limits.min_session_timeout_ms <= timeout_ms <= limits.max_session_timeout_ms:
        return JoinGroupResponse(error_code=ErrorCode.INVALID_SESSION_TIMEOUT, member_id=request.member_id)
    try:
        return await groups.write(
            request.group_id, lambda shard: shard.join_group(requester(context), request)
        )
    except KafkaError as error:
        return JoinGroupResponse(error_code=error.code)
