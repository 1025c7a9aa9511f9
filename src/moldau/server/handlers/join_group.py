"""JoinGroup (key 11), versions 0 to 9: a member comes, and hears of the group's next generation."""

from __future__ import annotations

from moldau.base.errors import ErrorCode, KafkaError
from moldau.groups.settings import GroupSettings
from moldau.groups.shard import GroupShard
from moldau.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from moldau.server.coordinators.coordinator import Coordinator
from moldau.server.coordinators.group_requests import requester
from moldau.server.dispatch.context import RequestContext
from moldau.server.settings import NodeSettings

#: The version since which a member says how long a rebalance may take.
_REBALANCE_TIMEOUT_SINCE = 1
#: The version since which a protocol that is not there is null; before, its name is empty.
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
