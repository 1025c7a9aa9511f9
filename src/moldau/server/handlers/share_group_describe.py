"""ShareGroupDescribe (key 77), version 1 (KIP-932): share groups, members and assignments."""

from __future__ import annotations

from moldau.base.errors import ErrorCode, KafkaError
from moldau.groups.shard import GroupShard
from moldau.protocol.messages.share_group_describe import (
    DescribedGroup,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
)
from moldau.server.coordinators.coordinator import Coordinator
from moldau.server.dispatch.authorized_operations import GROUP_OPERATIONS
from moldau.server.dispatch.context import RequestContext
from moldau.server.share.settings import ShareGroupConfigs


async def handle(
    groups: Coordinator[GroupShard],
    share_configs: ShareGroupConfigs,
    context: RequestContext,
    request: ShareGroupDescribeRequest,
) -> ShareGroupDescribeResponse:
    described = [await _describe(groups, share_configs, group_id) for group_id in request.group_ids]
    for group in described:
        if request.include_authorized_operations and group.error_code == ErrorCode.NONE:
            group.authorized_operations = GROUP_OPERATIONS
    return ShareGroupDescribeResponse(groups=described)


async def _describe(
    groups: Coordinator[GroupShard], share_configs: ShareGroupConfigs, group_id: str
) -> DescribedGroup:
    try:
        share_configs.check_enabled()
        if not group_id:
            return DescribedGroup(group_id="", error_code=ErrorCode.INVALID_GROUP_ID)
        found = await groups.read(group_id, lambda shard: shard.share.describe([group_id]))
        return found[0]
    except KafkaError as error:
        return DescribedGroup(group_id=group_id, error_code=error.code, error_message=error.message)
