"""ConsumerGroupHeartbeat (key 68), versions 0 to 1: members of consumer groups join, go on and leave."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moldau.base.errors import KafkaError
from moldau.groups.consumer.checks import check_request
from moldau.groups.consumer.context import enabled_assignors
from moldau.groups.settings import GroupSettings
from moldau.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from moldau.server.consumer_protocol import check_offered
from moldau.server.dispatch.context import RequestContext
from moldau.server.group_requests import requester

if TYPE_CHECKING:
    from moldau.server.node import Node


async def handle(
    node: Node, context: RequestContext, request: ConsumerGroupHeartbeatRequest
) -> ConsumerGroupHeartbeatResponse:
    try:
        check_offered(node)
        assignors = enabled_assignors(GroupSettings.from_config(node.config))
        check_request(request, context.api_version, assignors)
        return await node.coordinators.groups.write(
            request.group_id, lambda shard: shard.consumer_group_heartbeat(requester(context), request)
        )
    except KafkaError as error:
        return ConsumerGroupHeartbeatResponse(error_code=error.code, error_message=error.message or None)
