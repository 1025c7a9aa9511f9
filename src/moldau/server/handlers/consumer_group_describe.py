"""ConsumerGroupDescribe (key 69), versions 0 to 1: consumer groups with their members and assignments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moldau.base.errors import ErrorCode, KafkaError
from moldau.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)
from moldau.server.authorized_operations import GROUP_OPERATIONS
from moldau.server.consumer_protocol import check_offered
from moldau.server.dispatch.context import RequestContext

if TYPE_CHECKING:
    from moldau.server.node import Node


async def handle(
    node: Node, context: RequestContext, request: ConsumerGroupDescribeRequest
) -> ConsumerGroupDescribeResponse:
    groups = [await _describe(node, group_id) for group_id in request.group_ids]
    for group in groups:
        if request.include_authorized_operations and group.error_code == ErrorCode.NONE:
            group.authorized_operations = GROUP_OPERATIONS
    return ConsumerGroupDescribeResponse(groups=groups)


async def _describe(node: Node, group_id: str) -> DescribedGroup:
    try:
        check_offered(node)
        if not group_id:
            return DescribedGroup(group_id="", error_code=ErrorCode.INVALID_GROUP_ID)
        found = await node.coordinators.groups.read(
            group_id, lambda shard: shard.describe_consumer_groups([group_id])
        )
        return found[0]
    except KafkaError as error:
        return DescribedGroup(group_id=group_id, error_code=error.code)
