"""JoinGroup (key 11), versions 0 to 9: a member comes, and hears of the group's next generation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moldau.base.errors import ErrorCode, KafkaError
from moldau.groups.settings import GroupSettings
from moldau.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from moldau.server.dispatch.context import RequestContext
from moldau.server.group_requests import requester

if TYPE_CHECKING:
    from moldau.server.node import Node

#: The version since which a member says how long a rebalance may take.
_REBALANCE_TIMEOUT_SINCE = 1
#: The version since which a protocol that is not there is null; before, its name is empty.
_NULL_PROTOCOL_SINCE = 7


async def handle(node: Node, context: RequestContext, request: JoinGroupRequest) -> JoinGroupResponse:
    if context.api_version < _REBALANCE_TIMEOUT_SINCE:
        request.rebalance_timeout_ms = request.session_timeout_ms
    response = await _join(node, context, request)
    missing = "" if context.api_version < _NULL_PROTOCOL_SINCE else None
    response.protocol_name = response.protocol_name or missing
    return response


async def _join(node: Node, context: RequestContext, request: JoinGroupRequest) -> JoinGroupResponse:
    settings = GroupSettings.from_config(node.config)
    if not request.group_id:
        return JoinGroupResponse(error_code=ErrorCode.INVALID_GROUP_ID, member_id=request.member_id)
    timeout_ms = request.session_timeout_ms
    if not settings.min_session_timeout_ms <= timeout_ms <= settings.max_session_timeout_ms:
        return JoinGroupResponse(error_code=ErrorCode.INVALID_SESSION_TIMEOUT, member_id=request.member_id)
    try:
        return await node.coordinators.groups.write(
            request.group_id, lambda shard: shard.join_group(requester(context), request)
        )
    except KafkaError as error:
        return JoinGroupResponse(error_code=error.code)
