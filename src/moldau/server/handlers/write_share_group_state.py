"""WriteShareGroupState (key 85), versions 0 to 1 (KIP-932): persists state changes of share partitions.

- 1: delivery complete count (KIP-1226)

Requires CLUSTER_ACTION on CLUSTER; without it every partition gets CLUSTER_AUTHORIZATION_FAILED.
"""

from __future__ import annotations

from collections.abc import Iterable

from moldau.base.errors import KafkaError
from moldau.base.ids import TopicId
from moldau.protocol.messages.write_share_group_state import (
    PartitionData,
    PartitionResult,
    WriteShareGroupStateRequest,
    WriteShareGroupStateResponse,
    WriteStateResult,
)
from moldau.security.acl.permissions import CLUSTER_ACTION
from moldau.server.coordinators.coordinator import Coordinator
from moldau.server.dispatch.context import RequestContext
from moldau.server.share.state_requests import answer_partitions, refuse_partitions
from moldau.share.keys import SharePartitionKey
from moldau.share.persisted_state import read_batches
from moldau.share.shard import ShareShard, StateWrite


async def handle(
    share_coordinator: Coordinator[ShareShard], context: RequestContext, request: WriteShareGroupStateRequest
) -> WriteShareGroupStateResponse:
    if not context.allows(CLUSTER_ACTION):
        return _response(refuse_partitions(request.topics, _refused))

    async def write(key: SharePartitionKey, asked: PartitionData) -> PartitionResult:
        wanted = StateWrite(
            asked.state_epoch,
            asked.leader_epoch,
            asked.start_offset,
            asked.delivery_complete_count,
            read_batches(asked.state_batches),
        )
        await share_coordinator.write(key.name, lambda shard: shard.write(key, wanted))
        return PartitionResult(partition=key.partition)

    results = await answer_partitions(request.group_id, request.topics, write, _refused)
    return _response(results)


def _response(results: Iterable[tuple[TopicId, list[PartitionResult]]]) -> WriteShareGroupStateResponse:
    return WriteShareGroupStateResponse(
        results=[WriteStateResult(topic_id=topic_id, partitions=found) for topic_id, found in results]
    )


def _refused(partition: int, error: KafkaError) -> PartitionResult:
    return PartitionResult(partition=partition, error_code=error.code, error_message=str(error))
