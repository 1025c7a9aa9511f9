"""DescribeShareGroupOffsets (key 90), versions 0 to 1 (KIP-932): the start offsets of share groups.

- 1: lag (KIP-1226)

Requires DESCRIBE on GROUP for each group, and DESCRIBE on TOPIC: requested topics without it get
TOPIC_AUTHORIZATION_FAILED, and a list of all topics leaves them out.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import TopicId
from moldau.controller.errors import default_error
from moldau.groups.shard import GroupShard
from moldau.protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsResponseGroup,
    DescribeShareGroupOffsetsResponsePartition,
    DescribeShareGroupOffsetsResponseTopic,
)
from moldau.security.acl.permissions import DESCRIBE_GROUP, DESCRIBE_TOPIC
from moldau.server.brokers.high_watermarks import LeaderHighWatermarks
from moldau.server.coordinators.coordinator import Coordinator
from moldau.server.dispatch.context import RequestContext
from moldau.server.publisher import MetadataPublisher
from moldau.server.share.persister import Persister
from moldau.server.share.settings import ShareGroupConfigs
from moldau.share.keys import SharePartitionKey
from moldau.share.persisted_state import UNKNOWN_COUNT
from moldau.share.state_batches import UNKNOWN_START_OFFSET

_UNKNOWN_LAG = -1


@dataclass(frozen=True, slots=True)
class Dependencies:
    groups: Coordinator[GroupShard]
    persister: Persister
    high_watermarks: LeaderHighWatermarks
    share_configs: ShareGroupConfigs
    metadata: MetadataPublisher


async def handle(
    dependencies: Dependencies,
    context: RequestContext,
    request: DescribeShareGroupOffsetsRequest,
) -> DescribeShareGroupOffsetsResponse:
    return DescribeShareGroupOffsetsResponse(
        groups=[await _group(dependencies, context, each) for each in request.groups]
    )


async def _group(
    dependencies: Dependencies,
    context: RequestContext,
    asked: DescribeShareGroupOffsetsRequestGroup,
) -> DescribeShareGroupOffsetsResponseGroup:
    try:
        dependencies.share_configs.check_enabled()
        context.require(DESCRIBE_GROUP, asked.group_id)
        denied = _take_denied(context, asked)
        group = await _describe(dependencies, asked)
    except KafkaError as error:
        return DescribeShareGroupOffsetsResponseGroup(
            group_id=asked.group_id, error_code=error.code, error_message=error.message
        )
    if asked.topics is None:
        hidden = context.unauthorized(DESCRIBE_TOPIC, (topic.topic_name for topic in group.topics))
        group.topics = [topic for topic in group.topics if topic.topic_name not in hidden]
    group.topics = [*group.topics, *denied]
    return group


def _take_denied(
    context: RequestContext, asked: DescribeShareGroupOffsetsRequestGroup
) -> list[DescribeShareGroupOffsetsResponseTopic]:
    """Take the topics that the client may not describe out of the request; return their responses."""
    denied = context.unauthorized(DESCRIBE_TOPIC, (topic.topic_name for topic in asked.topics or ()))
    if not denied or asked.topics is None:
        return []
    refused = [topic for topic in asked.topics if topic.topic_name in denied]
    asked.topics = [topic for topic in asked.topics if topic.topic_name not in denied]
    return [
        DescribeShareGroupOffsetsResponseTopic(
            topic_name=topic.topic_name, partitions=[_denied(index) for index in topic.partitions]
        )
        for topic in refused
    ]


def _denied(index: int) -> DescribeShareGroupOffsetsResponsePartition:
    return DescribeShareGroupOffsetsResponsePartition(
        partition_index=index,
        start_offset=UNKNOWN_START_OFFSET,
        lag=_UNKNOWN_LAG,
        error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        error_message=default_error(ErrorCode.TOPIC_AUTHORIZATION_FAILED).message,
    )


async def _describe(
    dependencies: Dependencies,
    asked: DescribeShareGroupOffsetsRequestGroup,
) -> DescribeShareGroupOffsetsResponseGroup:
    """Describe the requested topics; null: all partitions with persisted state."""
    topics_image = dependencies.metadata.image.topics
    by_name, by_id = topics_image.by_name, topics_image.by_id
    wanted: dict[TopicId, list[int]] = {}
    unknown = []
    if asked.topics is None:
        known = await dependencies.groups.read(
            asked.group_id, lambda shard: shard.share.offsets.partitions_of(asked.group_id)
        )
        wanted = {topic_id: sorted(found) for topic_id, found in known.items() if topic_id in by_id}
    for topic in asked.topics or ():
        if topic.topic_name in by_name:
            wanted[by_name[topic.topic_name].id] = topic.partitions
        else:
            nowhere = [
                DescribeShareGroupOffsetsResponsePartition(
                    partition_index=each, start_offset=UNKNOWN_START_OFFSET
                )
                for each in topic.partitions
            ]
            unknown.append(
                DescribeShareGroupOffsetsResponseTopic(topic_name=topic.topic_name, partitions=nowhere)
            )
    topics = [
        DescribeShareGroupOffsetsResponseTopic(
            topic_name=by_id[topic_id].name,
            topic_id=topic_id,
            partitions=await asyncio.gather(
                *(
                    _partition(
                        dependencies,
                        SharePartitionKey(asked.group_id, topic_id, each),
                    )
                    for each in partitions
                )
            ),
        )
        for topic_id, partitions in wanted.items()
    ]
    return DescribeShareGroupOffsetsResponseGroup(group_id=asked.group_id, topics=[*topics, *unknown])


async def _partition(
    dependencies: Dependencies, key: SharePartitionKey
) -> DescribeShareGroupOffsetsResponsePartition:
    answer = DescribeShareGroupOffsetsResponsePartition(
        partition_index=key.partition, start_offset=UNKNOWN_START_OFFSET, lag=_UNKNOWN_LAG
    )
    try:
        state = await dependencies.persister.summary(key)
    except KafkaError:
        return answer
    answer.start_offset, answer.leader_epoch = state.start_offset, state.leader_epoch
    if state.start_offset == UNKNOWN_START_OFFSET or state.complete_count == UNKNOWN_COUNT:
        return answer
    try:
        end = await dependencies.high_watermarks.of(key.topic_id, key.partition)
        answer.lag = end - state.start_offset - state.complete_count
    except KafkaError as error:
        return DescribeShareGroupOffsetsResponsePartition(
            partition_index=key.partition, error_code=error.code, error_message=error.message
        )
    return answer
