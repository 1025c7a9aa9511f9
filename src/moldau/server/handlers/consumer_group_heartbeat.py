"""ConsumerGroupHeartbeat (key 68), versions 0 to 1 (KIP-848): members join, report and leave.

- 1: subscription by regular expression (KIP-848); clients generate their member ids (KIP-1082)

Requires READ on GROUP, and DESCRIBE on TOPIC for all subscribed topics. A regular expression matches only
topics with DESCRIBE on TOPIC.
"""

from __future__ import annotations

from moldau.base.errors import ErrorCode, KafkaError
from moldau.groups.consumer.checks import check_request
from moldau.groups.consumer.context import enabled_assignors
from moldau.groups.settings import GroupSettings
from moldau.groups.shard import GroupShard
from moldau.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from moldau.security.acl.permissions import DESCRIBE_TOPIC, READ_GROUP
from moldau.server.coordinators.coordinator import Coordinator
from moldau.server.coordinators.group_requests import check_consumer_protocol, requester
from moldau.server.dispatch.context import RequestContext
from moldau.server.publisher import MetadataPublisher
from moldau.server.settings import NodeSettings


async def handle(
    groups: Coordinator[GroupShard],
    settings: NodeSettings,
    metadata: MetadataPublisher,
    context: RequestContext,
    request: ConsumerGroupHeartbeatRequest,
) -> ConsumerGroupHeartbeatResponse:
    try:
        check_consumer_protocol(settings.config, metadata.image)
        context.require(READ_GROUP, request.group_id)
        if context.unauthorized(DESCRIBE_TOPIC, request.subscribed_topic_names or ()):
            return ConsumerGroupHeartbeatResponse(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        assignors = enabled_assignors(GroupSettings.from_config(settings.config))
        check_request(request, context.api_version, assignors)
        return await groups.write(
            request.group_id, lambda shard: shard.consumer_group_heartbeat(requester(context), request)
        )
    except KafkaError as error:
        return ConsumerGroupHeartbeatResponse(error_code=error.code, error_message=error.message or None)
