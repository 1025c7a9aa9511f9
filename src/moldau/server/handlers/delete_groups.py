"""DeleteGroups (key 42), versions 0 to 2: groups without members go, with their offsets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moldau.base.errors import KafkaError
from moldau.protocol.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from moldau.server.context import RequestContext

if TYPE_CHECKING:
    from moldau.server.node import Node


async def handle(node: Node, context: RequestContext, request: DeleteGroupsRequest) -> DeleteGroupsResponse:
    names = dict.fromkeys(request.groups_names)
    return DeleteGroupsResponse(results=[await _delete(node, name) for name in names])


async def _delete(node: Node, group_id: str) -> DeletableGroupResult:
    try:
        results = await node.coordinators.groups.write(
            group_id, lambda shard: shard.delete_groups([group_id])
        )
        return results[0]
    except KafkaError as error:
        return DeletableGroupResult(group_id=group_id, error_code=error.code)
