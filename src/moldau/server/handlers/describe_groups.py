"""DescribeGroups (key 15), versions 0 to 6: classic groups with their members and assignments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moldau.base.errors import ErrorCode, KafkaError
from moldau.protocol.messages.describe_groups import (
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from moldau.server.authorized_operations import GROUP_OPERATIONS
from moldau.server.dispatch.context import RequestContext
from moldau.server.group_requests import requester

if TYPE_CHECKING:
    from moldau.server.node import Node


async def handle(
    node: Node, context: RequestContext, request: DescribeGroupsRequest
) -> DescribeGroupsResponse:
    groups = [await _describe(node, context, group_id) for group_id in request.groups]
    for group in groups:
        if request.include_authorized_operations and group.error_code == ErrorCode.NONE:
            group.authorized_operations = GROUP_OPERATIONS
    return DescribeGroupsResponse(groups=groups)


async def _describe(node: Node, context: RequestContext, group_id: str) -> DescribedGroup:
    try:
        found = await node.coordinators.groups.read(
            group_id, lambda shard: shard.describe_groups(requester(context), [group_id])
        )
        return found[0]
    except KafkaError as error:
        return DescribedGroup(group_id=group_id, error_code=error.code)
