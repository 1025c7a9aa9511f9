"""DescribeGroups (key 15), versions 0 to 6: classic groups, members and assignments.

- 1: throttle time
- 2: on quota violation the broker responds before throttling (KIP-219)
- 3: authorized operations (KIP-430)
- 4: group instance ids (KIP-345)
- 5: flexible
- 6: error message; GROUP_ID_NOT_FOUND (KIP-1043)

Requires DESCRIBE on GROUP for each group; without it the group gets GROUP_AUTHORIZATION_FAILED.
"""

from __future__ import annotations

from moldau.base.errors import ErrorCode, KafkaError
from moldau.groups.shard import GroupShard
from moldau.protocol.messages.describe_groups import (
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from moldau.security.acl.enums import ResourceType
from moldau.security.acl.permissions import DESCRIBE_GROUP
from moldau.server.coordinators.coordinator import Coordinator
from moldau.server.coordinators.group_requests import requester
from moldau.server.dispatch.context import RequestContext


async def handle(
    groups: Coordinator[GroupShard], context: RequestContext, request: DescribeGroupsRequest
) -> DescribeGroupsResponse:
    described = [await _describe(groups, context, group_id) for group_id in request.groups]
    for group in described:
        if request.include_authorized_operations and group.error_code == ErrorCode.NONE:
            group.authorized_operations = context.authorized_operations(ResourceType.GROUP, group.group_id)
    return DescribeGroupsResponse(groups=described)


async def _describe(
    groups: Coordinator[GroupShard], context: RequestContext, group_id: str
) -> DescribedGroup:
    try:
        context.require(DESCRIBE_GROUP, group_id)
        found = await groups.read(
            group_id, lambda shard: shard.describe_groups(requester(context), [group_id])
        )
        return found[0]
    except KafkaError as error:
        return DescribedGroup(group_id=group_id, error_code=error.code)
