"""ReadShareGroupStateSummary (key 87), versions 0 to 1 (KIP-932): the start offsets of share partitions.

- 1: delivery complete count (KIP-1226)

Requires CLUSTER_ACTION on CLUSTER; without it every partition gets CLUSTER_AUTHORIZATION_FAILED.
"""

from __future__ import annotations

from collections.abc import Iterable

from moldau.base.errors import KafkaError
from moldau.base.ids import TopicId
from moldau.protocol.messages.read_share_group_state_summary import (
    PartitionData,
    PartitionResult,
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
    ReadStateSummaryResult,
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
    request: ReadShareGroupStateSummaryRequest,
) -> ReadShareGroupStateSummaryResponse:
    if not context.allows(CLUSTER_ACTION):
        return _response(refuse_partitions(request.topics, _refused))

    async def read(key: SharePartitionKey, asked: PartitionData) -> PartitionResult:
        state = await share_coordinator.read(key.name, lambda shard: shard.summary(key))
        return PartitionResult(
            partition=key.partition,
            state_epoch=state.state_epoch,
            leader_epoch=state.leader_epoch,
            start_offset=state.start_offset,
            delivery_complete_count=state.complete_count,
        )

    results = await answer_partitions(request.group_id, request.topics, read, _refused)
    return _response(results)


def _response(results: Iterable[tuple[TopicId, list[PartitionResult]]]) -> ReadShareGroupStateSummaryResponse:
    return ReadShareGroupStateSummaryResponse(
        results=[ReadStateSummaryResult(topic_id=topic_id, partitions=found) for topic_id, found in results]
    )


def _refused(partition: int, error: KafkaError) -> PartitionResult:
    return PartitionResult(partition=partition, error_code=error.code, error_message=str(error))
