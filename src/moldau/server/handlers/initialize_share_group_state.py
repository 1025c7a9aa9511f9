"""InitializeShareGroupState (key 83), version 0 (KIP-932): initializes the state of share partitions.

Requires CLUSTER_ACTION on CLUSTER; without it every partition gets CLUSTER_AUTHORIZATION_FAILED.
"""

from __future__ import annotations

from collections.abc import Iterable

from moldau.base.errors import KafkaError
from moldau.base.ids import TopicId
from moldau.protocol.messages.initialize_share_group_state import (
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
    InitializeStateResult,
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
    share_coordinator: Coordinator[ShareShard],
    context: RequestContext,
    request: InitializeShareGroupStateRequest,
) -> InitializeShareGroupStateResponse:
    if not context.allows(CLUSTER_ACTION):
        return _response(refuse_partitions(request.topics, _refused))

    async def initialize(key: SharePartitionKey, asked: PartitionData) -> PartitionResult:
        await share_coordinator.write(
            key.name, lambda shard: shard.initialize(key, asked.state_epoch, asked.start_offset)
        )
        return PartitionResult(partition=key.partition)

    results = await answer_partitions(
        request.group_id, request.topics, initialize, _refused, allow_empty=True
    )
    return _response(results)


def _response(results: Iterable[tuple[TopicId, list[PartitionResult]]]) -> InitializeShareGroupStateResponse:
    return InitializeShareGroupStateResponse(
        results=[InitializeStateResult(topic_id=topic_id, partitions=found) for topic_id, found in results]
    )


def _refused(partition: int, error: KafkaError) -> PartitionResult:
    return PartitionResult(partition=partition, error_code=error.code, error_message=str(error))
