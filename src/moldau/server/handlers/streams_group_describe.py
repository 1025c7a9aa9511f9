"""StreamsGroupDescribe (key 89), version 0 (KIP-1071): topology, members and tasks of streams groups.

Requires DESCRIBE on GROUP for each group; without it the group gets GROUP_AUTHORIZATION_FAILED. A group whose
topology has a topic without DESCRIBE on TOPIC is not described: TOPIC_AUTHORIZATION_FAILED.
"""

from __future__ import annotations

from collections.abc import Iterator

from moldau.base.errors import ErrorCode, KafkaError
from moldau.groups.shard import GroupShard
from moldau.protocol.messages.streams_group_describe import (
    DescribedGroup,
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
)
from moldau.security.acl.enums import ResourceType
from moldau.security.acl.permissions import DESCRIBE_GROUP, DESCRIBE_TOPIC
from moldau.server.coordinators.coordinator import Coordinator
from moldau.server.coordinators.group_requests import check_streams_protocol
from moldau.server.dispatch.context import RequestContext
from moldau.server.publisher import MetadataPublisher
from moldau.server.settings import NodeSettings

_HIDDEN_TOPICS = "The described group uses topics that the client is not authorized to describe."


async def handle(
    groups: Coordinator[GroupShard],
    settings: NodeSettings,
    metadata: MetadataPublisher,
    context: RequestContext,
    request: StreamsGroupDescribeRequest,
) -> StreamsGroupDescribeResponse:
    described = [
        await _describe(groups, settings, metadata, context, group_id) for group_id in request.group_ids
    ]
    for group in described:
        if request.include_authorized_operations and group.error_code == ErrorCode.NONE:
            group.authorized_operations = context.authorized_operations(ResourceType.GROUP, group.group_id)
    return StreamsGroupDescribeResponse(groups=[_authorized(context, group) for group in described])


def _authorized(context: RequestContext, group: DescribedGroup) -> DescribedGroup:
    """Return the group, or an error if it has topics that the client may not describe."""
    if not context.unauthorized(DESCRIBE_TOPIC, _topics(group)):
        return group
    return DescribedGroup(
        group_id=group.group_id,
        error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        error_message=_HIDDEN_TOPICS,
    )


def _topics(group: DescribedGroup) -> Iterator[str]:
    subtopologies = group.topology.subtopologies if group.topology is not None else None
    for each in subtopologies or ():
        yield from each.source_topics
        yield from each.repartition_sink_topics
        for topic in (*each.repartition_source_topics, *each.state_changelog_topics):
            yield topic.name


async def _describe(
    groups: Coordinator[GroupShard],
    settings: NodeSettings,
    metadata: MetadataPublisher,
    context: RequestContext,
    group_id: str,
) -> DescribedGroup:
    try:
        check_streams_protocol(settings.config, metadata.image)
        context.require(DESCRIBE_GROUP, group_id)
        if not group_id:
            return DescribedGroup(group_id="", error_code=ErrorCode.INVALID_GROUP_ID)
        found = await groups.read(group_id, lambda shard: shard.streams.describe([group_id]))
        return found[0]
    except KafkaError as error:
        return DescribedGroup(group_id=group_id, error_code=error.code, error_message=error.message)
