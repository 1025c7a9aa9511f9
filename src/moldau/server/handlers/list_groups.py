"""ListGroups (key 16), versions 0 to 5: the groups that this broker coordinates.

- 1: throttle time
- 2: on quota violation the broker responds before throttling (KIP-219)
- 3: flexible
- 4: filter by state (KIP-518)
- 5: filter by type (KIP-848)

Lists all groups with DESCRIBE on CLUSTER, else those with DESCRIBE on GROUP.
"""

from __future__ import annotations

from moldau.groups.shard import GroupShard
from moldau.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from moldau.security.acl.permissions import DESCRIBE_CLUSTER, DESCRIBE_GROUP
from moldau.server.coordinators.coordinator import Coordinator
from moldau.server.dispatch.context import RequestContext


async def handle(
    groups: Coordinator[GroupShard], context: RequestContext, request: ListGroupsRequest
) -> ListGroupsResponse:
    lists_all = context.allows(DESCRIBE_CLUSTER, log_denied=False)
    found = await groups.read_all(
        lambda shard: shard.list_groups(request.states_filter, request.types_filter)
    )
    return ListGroupsResponse(
        groups=[
            group
            for groups in found
            for group in groups
            if lists_all or context.allows(DESCRIBE_GROUP, group.group_id, log_denied=False)
        ]
    )
