"""DeleteShareGroupState (key 86), version 0 (KIP-932): deletes the persisted state of share partitions.

Requires CLUSTER_ACTION on CLUSTER; without it every partition gets CLUSTER_AUTHORIZATION_FAILED.
"""

from __future__ import annotations

from collections.abc import Iterable

from moldau.base.errors import KafkaError
from moldau.base.ids import TopicId
from moldau.protocol.messages.delete_share_group_state import (
    DeleteShareGroupStateRequest,
    DeleteShareGroupStateResponse,
    DeleteStateResult,
    PartitionData,
    PartitionResult,
)
from moldau.security.acl.permissions import CLUSTER_ACTION
from moldau.server.coordinators.coordinator import Coordinator
from moldau.server.dispatch.context import RequestContext
from moldau.server.share.state_requests import answer_partitions, refuse_partitions
from moldau.share.keys import SharePartitionKey
from moldau.share.shard import ShareShard


async def handle(
    share_coordinator: Coordinator[ShareShard], context: RequestContext, request: DeleteShareGroupStateRequest
) -> DeleteShareGroupStateResponse:
    if not context.allows(CLUSTER_ACTION):
        return _response(refuse_partitions(request.topics, _refused))

    async def delete(key: SharePartitionKey, asked: PartitionData) -> PartitionResult:
        await share_coordinator.write(key.name, lambda shard: shard.delete(key))
        return PartitionResult(partition=key.partition)

    results = await answer_partitions(request.group_id, request.topics, delete, _refused)
    return _response(results)


def _response(results: Iterable[tuple[TopicId, list[PartitionResult]]]) -> DeleteShareGroupStateResponse:
    return DeleteShareGroupStateResponse(
        results=[DeleteStateResult(topic_id=topic_id, partitions=found) for topic_id, found in results]
    )


def _refused(partition: int, error: KafkaError) -> PartitionResult:
    return PartitionResult(partition=partition, error_code=error.code, error_message=str(error))
