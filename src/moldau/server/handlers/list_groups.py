"""ListGroups (key 16), versions 0 to 5: the groups whose coordinator this broker is, by state and type."""

from __future__ import annotations

from moldau.groups.shard import GroupShard
from moldau.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from moldau.server.coordinators.coordinator import Coordinator
from moldau.server.dispatch.context import RequestContext


async def handle(
    groups: Coordinator[GroupShard], context: RequestContext, request: ListGroupsRequest
) -> ListGroupsResponse:
    found = await groups.read_all(
        lambda shard: shard.list_groups(request.states_filter, request.types_filter)
    )
    return ListGroupsResponse(groups=[group for groups in found for group in groups])
