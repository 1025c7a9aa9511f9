"""ConsumerGroupDescribe (key 69), versions 0 to 1 (KIP-848): consumer groups, members and assignments.

- 1: member type (KIP-1099)

Requires DESCRIBE on GROUP for each group; without it the group gets GROUP_AUTHORIZATION_FAILED. A group with
an assigned topic without DESCRIBE on TOPIC is not described: TOPIC_AUTHORIZATION_FAILED.
"""

from __future__ import annotations

from moldau.base.errors import ErrorCode, KafkaError
from moldau.groups.shard import GroupShard
from moldau.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)
from moldau.security.acl.enums import ResourceType
from moldau.security.acl.permissions import DESCRIBE_GROUP, DESCRIBE_TOPIC
from moldau.server.coordinators.coordinator import Coordinator
from moldau.server.coordinators.group_requests import check_consumer_protocol
from moldau.server.dispatch.context import RequestContext
from moldau.server.publisher import MetadataPublisher
from moldau.server.settings import NodeSettings

HIDDEN_TOPICS = "The group has topics that the client is not authorized to describe."


async def handle(
    groups: Coordinator[GroupShard],
    settings: NodeSettings,
    metadata: MetadataPublisher,
    context: RequestContext,
    request: ConsumerGroupDescribeRequest,
) -> ConsumerGroupDescribeResponse:
    described = [
        await _describe(groups, settings, metadata, context, group_id) for group_id in request.group_ids
    ]
    for group in described:
        if request.include_authorized_operations and group.error_code == ErrorCode.NONE:
            group.authorized_operations = context.authorized_operations(ResourceType.GROUP, group.group_id)
    return ConsumerGroupDescribeResponse(groups=[_authorized(context, group) for group in described])


def _authorized(context: RequestContext, group: DescribedGroup) -> DescribedGroup:
    """Return the group, or an error if it has topics that the client may not describe."""
    topics = (
        partition.topic_name
        for member in group.members
        for assignment in (member.assignment, member.target_assignment)
        for partition in assignment.topic_partitions
    )
    if not context.unauthorized(DESCRIBE_TOPIC, topics):
        return group
    return DescribedGroup(
        group_id=group.group_id,
        error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        error_message=HIDDEN_TOPICS,
    )


async def _describe(
    groups: Coordinator[GroupShard],
    settings: NodeSettings,
    metadata: MetadataPublisher,
    context: RequestContext,
    group_id: str,
) -> DescribedGroup:
    try:
        check_consumer_protocol(settings.config, metadata.image)
        context.require(DESCRIBE_GROUP, group_id)
        if not group_id:
            return DescribedGroup(group_id="", error_code=ErrorCode.INVALID_GROUP_ID)
        found = await groups.read(group_id, lambda shard: shard.describe_consumer_groups([group_id]))
        return found[0]
    except KafkaError as error:
        return DescribedGroup(group_id=group_id, error_code=error.code)
