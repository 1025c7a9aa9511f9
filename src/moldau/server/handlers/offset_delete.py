"""OffsetDelete (key 47), version 0 (KIP-496): deletes offsets of topics that a group is not subscribed to.

Requires DELETE on GROUP, and READ on TOPIC for each topic; the partitions of a topic without it get
TOPIC_AUTHORIZATION_FAILED.
"""

from __future__ import annotations

from collections.abc import Sequence

from moldau.base.errors import ErrorCode, KafkaError
from moldau.groups.shard import GroupShard
from moldau.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from moldau.security.acl.permissions import DELETE_GROUP, READ_TOPIC
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
    context.require(DELETE_GROUP, request.group_id)
    denied = context.unauthorized(READ_TOPIC, (topic.name for topic in request.topics))
    topics: dict[str, OffsetDeleteResponseTopic] = {}
    accepted: list[OffsetDeleteRequestTopic] = []
    for topic in request.topics:
        if topic.name in denied:
            topics[topic.name] = _refused(topic.name, topic.partitions, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            continue
        known, missing = known_partitions(metadata.image, topic.name, topic.partitions)
        if missing:
            topics[topic.name] = _refused(topic.name, missing, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
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


def _refused(
    name: str, partitions: Sequence[OffsetDeleteRequestPartition], code: ErrorCode
) -> OffsetDeleteResponseTopic:
    return OffsetDeleteResponseTopic(
        name=name,
        partitions=[
            OffsetDeleteResponsePartition(partition_index=each.partition_index, error_code=code)
            for each in partitions
        ],
    )


async def _delete(groups: Coordinator[GroupShard], request: OffsetDeleteRequest) -> OffsetDeleteResponse:
    if not request.group_id:
        return OffsetDeleteResponse(error_code=ErrorCode.INVALID_GROUP_ID)
    try:
        return await groups.write(request.group_id, lambda shard: shard.delete_offsets(request))
    except KafkaError as error:
        return OffsetDeleteResponse(error_code=error.code)
