"""DeleteGroups (key 42), versions 0 to 2 (KIP-229): deletes empty groups and their offsets.

- 1: on quota violation the broker responds before throttling (KIP-219)
- 2: flexible

Requires DELETE on GROUP for each group; without it the group gets GROUP_AUTHORIZATION_FAILED.
"""

from __future__ import annotations

from moldau.base.errors import KafkaError
from moldau.groups.shard import GroupShard
from moldau.protocol.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from moldau.security.acl.permissions import DELETE_GROUP
from moldau.server.coordinators.coordinator import Coordinator
from moldau.server.dispatch.context import RequestContext
from moldau.server.share.persister import Persister


async def handle(
    groups: Coordinator[GroupShard],
    persister: Persister,
    context: RequestContext,
    request: DeleteGroupsRequest,
) -> DeleteGroupsResponse:
    names = dict.fromkeys(request.groups_names)
    return DeleteGroupsResponse(results=[await _delete(groups, persister, context, name) for name in names])


async def _delete(
    groups: Coordinator[GroupShard], persister: Persister, context: RequestContext, group_id: str
) -> DeletableGroupResult:
    try:
        context.require(DELETE_GROUP, group_id)
        await _delete_share_state(groups, persister, group_id)
        results = await groups.write(group_id, lambda shard: shard.delete_groups([group_id]))
        return results[0]
    except KafkaError as error:
        return DeletableGroupResult(group_id=group_id, error_code=error.code)


async def _delete_share_state(groups: Coordinator[GroupShard], persister: Persister, group_id: str) -> None:
    """Delete the persisted state of a share group first."""
    state = await groups.write(group_id, lambda shard: shard.share.offsets.delete_group(group_id))
    failures = {} if state is None else await persister.delete(state)
    for failed in failures.values():
        raise next(iter(failed.values()))
