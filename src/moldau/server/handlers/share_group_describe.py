"""ShareGroupDescribe (key 77), version 1: share groups with their members and what those read from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moldau.base.errors import ErrorCode, KafkaError
from moldau.protocol.messages.share_group_describe import (
    DescribedGroup,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
)
from moldau.server.authorized_operations import GROUP_OPERATIONS
from moldau.server.dispatch.context import RequestContext
from moldau.server.share.settings import check_enabled

if TYPE_CHECKING:
    from moldau.server.node import Node


async def handle(
    node: Node, context: RequestContext, request: ShareGroupDescribeRequest
) -> ShareGroupDescribeResponse:
    groups = [await _describe(node, group_id) for group_id in request.group_ids]
    for group in groups:
        if request.include_authorized_operations and group.error_code == ErrorCode.NONE:
            group.authorized_operations = GROUP_OPERATIONS
    return ShareGroupDescribeResponse(groups=groups)


async def _describe(node: Node, group_id: str) -> DescribedGroup:
    try:
        check_enabled(node)
        if not group_id:
            return DescribedGroup(group_id="", error_code=ErrorCode.INVALID_GROUP_ID)
        found = await node.coordinators.groups.read(group_id, lambda shard: shard.share.describe([group_id]))
        return found[0]
    except KafkaError as error:
        return DescribedGroup(group_id=group_id, error_code=error.code, error_message=error.message)
