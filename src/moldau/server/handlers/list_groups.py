"""ListGroups (key 16), versions 0 to 5: the groups whose coordinator this broker is, by state and type."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moldau.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from moldau.server.dispatch.context import RequestContext

if TYPE_CHECKING:
    from moldau.server.node import Node


async def handle(node: Node, context: RequestContext, request: ListGroupsRequest) -> ListGroupsResponse:
    found = await node.coordinators.groups.read_all(
        lambda shard: shard.list_groups(request.states_filter, request.types_filter)
    )
    return ListGroupsResponse(groups=[group for groups in found for group in groups])
