"""OffsetDelete (key 47), version 0 (KIP-496): deletes offsets of topics that a group is not subscribed to."""

from __future__ import annotations

from moldau.base.errors import ErrorCode, KafkaError
from moldau.groups.shard import GroupShard
from moldau.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from moldau.server.coordinators.coordinator import Coordinator
from moldau.server.coordinators.group_requests import known_partitions
from moldau.server.dispatch.context import RequestContext
from moldau.server.publisher import MetadataPublisher


async def handle(
    groups: Coordinator[GroupShard],
    metadata: MetadataPublisher,
    context: RequestContext,
    request: OffsetDeleteRequest,
) -> OffsetDeleteResponse:
    topics: dict[str, OffsetDeleteResponseTopic] = {}
    accepted: list[OffsetDeleteRequestTopic] = []
    for topic in request.topics:
        known, missing = known_partitions(metadata.image, topic.name, topic.partitions)
        if missing:
            gone = [
                OffsetDeleteResponsePartition(
                    partition_index=each.partition_index, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                )
                for each in missing
            ]
            topics[topic.name] = OffsetDeleteResponseTopic(name=topic.name, partitions=gone)
        if known:
            accepted.append(OffsetDeleteRequestTopic(name=topic.name, partitions=known))
    request.topics = accepted
    answer = await _delete(groups, request)
    if answer.error_code:
        return answer
    for answered in answer.topics:
        entry = topics.setdefault(answered.name, answered)
        if entry is not answered:
            entry.partitions = [*entry.partitions, *answered.partitions]
    return OffsetDeleteResponse(topics=list(topics.values()))


async def _delete(groups: Coordinator[GroupShard], request: OffsetDeleteRequest) -> OffsetDeleteResponse:
    if not request.group_id:
        return OffsetDeleteResponse(error_code=ErrorCode.INVALID_GROUP_ID)
    try:
        return await groups.write(request.group_id, lambda shard: shard.delete_offsets(request))
    except KafkaError as error:
        return OffsetDeleteResponse(error_code=error.code)
