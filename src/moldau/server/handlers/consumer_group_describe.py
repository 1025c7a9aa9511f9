"""ConsumerGroupDescribe (key 69), versions 0 to 1 (KIP-848): consumer groups, members and assignments.

- 1: member type (KIP-1099)
"""

from __future__ import annotations

from moldau.base.errors import ErrorCode, KafkaError
from moldau.groups.shard import GroupShard
from moldau.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)
from moldau.server.coordinators.coordinator import Coordinator
from moldau.server.coordinators.group_requests import check_consumer_protocol
from moldau.server.dispatch.authorized_operations import GROUP_OPERATIONS
from moldau.server.dispatch.context import RequestContext
from moldau.server.publisher import MetadataPublisher
from moldau.server.settings import NodeSettings


async def handle(
    groups: Coordinator[GroupShard],
    settings: NodeSettings,
    metadata: MetadataPublisher,
    context: RequestContext,
    request: ConsumerGroupDescribeRequest,
) -> ConsumerGroupDescribeResponse:
    described = [await _describe(groups, settings, metadata, group_id) for group_id in request.group_ids]
    for group in described:
        if request.include_authorized_operations and group.error_code == ErrorCode.NONE:
            group.authorized_operations = GROUP_OPERATIONS
    return ConsumerGroupDescribeResponse(groups=described)


async def _describe(
    groups: Coordinator[GroupShard], settings: NodeSettings, metadata: MetadataPublisher, group_id: str
) -> DescribedGroup:
    try:
        check_consumer_protocol(settings.config, metadata.image)
        if not group_id:
            return DescribedGroup(group_id="", error_code=ErrorCode.INVALID_GROUP_ID)
        found = await groups.read(group_id, lambda shard: shard.describe_consumer_groups([group_id]))
        return found[0]
    except KafkaError as error:
        return DescribedGroup(group_id=group_id, error_code=error.code)
