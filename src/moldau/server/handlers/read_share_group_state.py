"""ReadShareGroupState (key 84), version 0 (KIP-932): the persisted state of share partitions.

Requires CLUSTER_ACTION on CLUSTER; without it every partition gets CLUSTER_AUTHORIZATION_FAILED.
"""

from __future__ import annotations

from collections.abc import Iterable

from moldau.base.errors import KafkaError
from moldau.base.ids import TopicId
from moldau.protocol.messages.read_share_group_state import (
    PartitionData,
    PartitionResult,
    ReadShareGroupStateRequest,
    ReadShareGroupStateResponse,
    ReadStateResult,
    StateBatch,
)
from moldau.security.acl.permissions import CLUSTER_ACTION
from moldau.server.coordinators.coordinator import Coordinator
from moldau.server.dispatch.context import RequestContext
from moldau.server.share.state_requests import answer_partitions, refuse_partitions
from moldau.share.keys import SharePartitionKey
from moldau.share.shard import ShareShard


async def handle(
    share_coordinator: Coordinator[ShareShard], context: RequestContext, request: ReadShareGroupStateRequest
) -> ReadShareGroupStateResponse:
    if not context.allows(CLUSTER_ACTION):
        return _response(refuse_partitions(request.topics, _refused))

    async def read(key: SharePartitionKey, asked: PartitionData) -> PartitionResult:
        state = await share_coordinator.write(key.name, lambda shard: shard.read(key, asked.leader_epoch))
        return PartitionResult(
            partition=key.partition,
            state_epoch=state.state_epoch,
            start_offset=state.start_offset,
            state_batches=[
                StateBatch(
                    first_offset=each.first_offset,
                    last_offset=each.last_offset,
                    delivery_state=each.state,
                    delivery_count=each.delivery_count,
                )
                for each in state.batches
            ],
        )

    results = await answer_partitions(request.group_id, request.topics, read, _refused)
    return _response(results)


def _response(results: Iterable[tuple[TopicId, list[PartitionResult]]]) -> ReadShareGroupStateResponse:
    return ReadShareGroupStateResponse(
        results=[ReadStateResult(topic_id=topic_id, partitions=found) for topic_id, found in results]
    )


def _refused(partition: int, error: KafkaError) -> PartitionResult:
    return PartitionResult(partition=partition, error_code=error.code, error_message=str(error))
