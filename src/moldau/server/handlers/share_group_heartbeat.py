"""ShareGroupHeartbeat (key 76), version 1: members of share groups join, go on and leave."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moldau.base.errors import ErrorCode, KafkaError
from moldau.groups.share.checks import check_request, is_member_id
from moldau.protocol.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from moldau.server.dispatch.context import RequestContext
from moldau.server.group_requests import requester
from moldau.server.share.settings import check_enabled

if TYPE_CHECKING:
    from moldau.server.node import Node


async def handle(
    node: Node, context: RequestContext, request: ShareGroupHeartbeatRequest
) -> ShareGroupHeartbeatResponse:
    try:
        check_enabled(node)
        if not is_member_id(request.member_id):
            return ShareGroupHeartbeatResponse(error_code=ErrorCode.INVALID_REQUEST)
        check_request(request)
        return await node.coordinators.groups.write(
            request.group_id, lambda shard: shard.share.heartbeats.heartbeat(requester(context), request)
        )
    except KafkaError as error:
        return ShareGroupHeartbeatResponse(error_code=error.code, error_message=error.message or None)
