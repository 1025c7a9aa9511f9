"""DescribeShareGroupOffsets (key 90), versions 0 to 1: where share groups are, and their lag."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from moldau.base.errors import KafkaError
from moldau.base.ids import TopicId
from moldau.protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsResponseGroup,
    DescribeShareGroupOffsetsResponsePartition,
    DescribeShareGroupOffsetsResponseTopic,
)
from moldau.server.dispatch.context import RequestContext
from moldau.server.share.settings import check_enabled
from moldau.share.keys import SharePartitionKey
from moldau.share.persisted_state import UNKNOWN_COUNT
from moldau.share.state_batches import UNKNOWN_START_OFFSET

if TYPE_CHECKING:
    from moldau.server.node import Node

_UNKNOWN_LAG = -1


async def handle(
    node: Node, context: RequestContext, request: DescribeShareGroupOffsetsRequest
) -> DescribeShareGroupOffsetsResponse:
    return DescribeShareGroupOffsetsResponse(groups=[await _group(node, each) for each in request.groups])


async def _group(
    node: Node, asked: DescribeShareGroupOffsetsRequestGroup
) -> DescribeShareGroupOffsetsResponseGroup:
    try:
        check_enabled(node)
        return await _describe(node, asked)
    except KafkaError as error:
        return DescribeShareGroupOffsetsResponseGroup(
            group_id=asked.group_id, error_code=error.code, error_message=error.message
        )


async def _describe(
    node: Node, asked: DescribeShareGroupOffsetsRequestGroup
) -> DescribeShareGroupOffsetsResponseGroup:
    """Without topics: all partitions the group has state for."""
    by_name, by_id = node.image.topics.by_name, node.image.topics.by_id
    wanted: dict[TopicId, list[int]] = {}
    unknown = []
    if asked.topics is None:
        known = await node.coordinators.groups.read(
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
                *(_partition(node, SharePartitionKey(asked.group_id, topic_id, each)) for each in partitions)
            ),
        )
        for topic_id, partitions in wanted.items()
    ]
    return DescribeShareGroupOffsetsResponseGroup(group_id=asked.group_id, topics=[*topics, *unknown])


async def _partition(node: Node, key: SharePartitionKey) -> DescribeShareGroupOffsetsResponsePartition:
    answer = DescribeShareGroupOffsetsResponsePartition(
        partition_index=key.partition, start_offset=UNKNOWN_START_OFFSET, lag=_UNKNOWN_LAG
    )
    try:
        state = await node.coordinators.persister.summary(key)
    except KafkaError:
        return answer
    answer.start_offset, answer.leader_epoch = state.start_offset, state.leader_epoch
    if state.start_offset == UNKNOWN_START_OFFSET or state.complete_count == UNKNOWN_COUNT:
        return answer
    try:
        end = await node.coordinators.latest_offsets.of(key)
        answer.lag = end - state.start_offset - state.complete_count
    except KafkaError as error:
        return DescribeShareGroupOffsetsResponsePartition(
            partition_index=key.partition, error_code=error.code, error_message=error.message
        )
    return answer
