"""ShareGroupHeartbeat (key 76), version 1 (KIP-932): members of share groups join, report and leave.

Requires READ on GROUP, and DESCRIBE on TOPIC for all subscribed topics.
"""

from __future__ import annotations

from moldau.base.errors import ErrorCode, KafkaError
from moldau.groups.shard import GroupShard
from moldau.groups.share.checks import check_request, is_member_id
from moldau.protocol.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from moldau.security.acl.permissions import DESCRIBE_TOPIC, READ_GROUP
from moldau.server.coordinators.coordinator import Coordinator
from moldau.server.coordinators.group_requests import requester
from moldau.server.dispatch.context import RequestContext
from moldau.server.share.settings import ShareGroupConfigs


async def handle(
    groups: Coordinator[GroupShard],
    share_configs: ShareGroupConfigs,
    context: RequestContext,
    request: ShareGroupHeartbeatRequest,
) -> ShareGroupHeartbeatResponse:
    try:
        share_configs.check_enabled()
        context.require(READ_GROUP, request.group_id)
        if not is_member_id(request.member_id):
            return ShareGroupHeartbeatResponse(error_code=ErrorCode.INVALID_REQUEST)
        if context.unauthorized(DESCRIBE_TOPIC, request.subscribed_topic_names or ()):
            return ShareGroupHeartbeatResponse(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        check_request(request)
        return await groups.write(
            request.group_id, lambda shard: shard.share.heartbeats.heartbeat(requester(context), request)
        )
    except KafkaError as error:
        return ShareGroupHeartbeatResponse(error_code=error.code, error_message=error.message or None)
