"""OffsetFetch (key 9), versions 1 to 10: the committed offsets of groups.

- 2: all offsets of a group; top-level error code (KIP-88)
- 3: throttle time
- 4: on quota violation the broker responds before throttling (KIP-219)
- 5: leader epoch (KIP-320)
- 6: flexible
- 7: `require_stable`: UNSTABLE_OFFSET_COMMIT while a transaction is open (KIP-447)
- 8: several groups (KIP-709)
- 9: member id and epoch of the consumer protocol (KIP-848)
- 10: topic ids instead of names (KIP-848)

Requires DESCRIBE on GROUP for each group, and DESCRIBE on TOPIC: requested topics without it get
TOPIC_AUTHORIZATION_FAILED, and a list of all offsets leaves them out. An unknown topic id is UNKNOWN_TOPIC_ID
for every client.
"""

from __future__ import annotations

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import ZERO_UUID
from moldau.groups.shard import GroupShard
from moldau.metadata.image import MetadataImage
from moldau.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from moldau.security.acl.permissions import DESCRIBE_GROUP, DESCRIBE_TOPIC
from moldau.server.coordinators.coordinator import Coordinator
from moldau.server.dispatch.context import RequestContext
from moldau.server.publisher import MetadataPublisher

_GROUP_ERROR_SINCE = 2
_SEVERAL_GROUPS_SINCE = 8
_TOPIC_IDS_SINCE = 10


async def handle(
    groups: Coordinator[GroupShard],
    metadata: MetadataPublisher,
    context: RequestContext,
    request: OffsetFetchRequest,
) -> OffsetFetchResponse:
    if context.api_version >= _SEVERAL_GROUPS_SINCE:
        fetched = [
            await _fetch(groups, metadata, context, each, request.require_stable) for each in request.groups
        ]
        return OffsetFetchResponse(groups=fetched)
    asked = None
    if request.topics is not None:
        asked = [
            OffsetFetchRequestTopics(name=each.name, partition_indexes=each.partition_indexes)
            for each in request.topics
        ]
    one = OffsetFetchRequestGroup(group_id=request.group_id, topics=asked)
    return _single(await _fetch(groups, metadata, context, one, request.require_stable))


async def _fetch(
    groups: Coordinator[GroupShard],
    metadata: MetadataPublisher,
    context: RequestContext,
    group: OffsetFetchRequestGroup,
    require_stable: bool,
) -> OffsetFetchResponseGroup:
    if not context.allows(DESCRIBE_GROUP, group.group_id):
        return _failed(context, group, ErrorCode.GROUP_AUTHORIZATION_FAILED)
    by_id = context.api_version >= _TOPIC_IDS_SINCE
    refused = _name_topics(metadata.image, group) if by_id else []
    refused += _take_denied(context, group)
    try:
        found = await groups.read(
            group.group_id, lambda shard: shard.fetch_offsets(group, require_stable=require_stable)
        )
    except KafkaError as error:
        return _failed(context, group, error.code)
    if group.topics is None:
        denied = context.unauthorized(DESCRIBE_TOPIC, (topic.name for topic in found.topics))
        found.topics = [topic for topic in found.topics if topic.name not in denied]
    found.topics = [*found.topics, *refused]
    if by_id and group.topics is None:
        _identify(metadata.image, found)
    return found


def _take_denied(context: RequestContext, group: OffsetFetchRequestGroup) -> list[OffsetFetchResponseTopics]:
    """Take the topics that the client may not describe out of the request; return their responses."""
    denied = context.unauthorized(DESCRIBE_TOPIC, (topic.name for topic in group.topics or ()))
    if not denied or group.topics is None:
        return []
    refused = [topic for topic in group.topics if topic.name in denied]
    group.topics = [topic for topic in group.topics if topic.name not in denied]
    return [_none(topic, ErrorCode.TOPIC_AUTHORIZATION_FAILED) for topic in refused]


def _name_topics(image: MetadataImage, group: OffsetFetchRequestGroup) -> list[OffsetFetchResponseTopics]:
    """Set the names of topics requested by id; return the responses of unknown ids."""
    named, unknown = [], []
    for topic in group.topics or ():
        found = image.topics.by_id.get(topic.topic_id)
        if found is None:
            unknown.append(_none(topic, ErrorCode.UNKNOWN_TOPIC_ID))
        else:
            topic.name = found.name
            named.append(topic)
    if group.topics is not None:
        group.topics = named
    return unknown


def _identify(image: MetadataImage, group: OffsetFetchResponseGroup) -> None:
    """Set the ids of topics; leave out deleted topics, which have none."""
    topics = []
    for topic in group.topics:
        found = image.topics.by_name.get(topic.name)
        if found is not None:
            topic.topic_id = found.id
            topics.append(topic)
    group.topics = topics


def _failed(
    context: RequestContext, group: OffsetFetchRequestGroup, code: ErrorCode
) -> OffsetFetchResponseGroup:
    if context.api_version >= _GROUP_ERROR_SINCE:
        return OffsetFetchResponseGroup(group_id=group.group_id, error_code=code)
    topics = [_none(topic, code) for topic in group.topics or ()]
    return OffsetFetchResponseGroup(group_id=group.group_id, topics=topics)


def _none(topic: OffsetFetchRequestTopics, code: ErrorCode) -> OffsetFetchResponseTopics:
    return OffsetFetchResponseTopics(
        name=topic.name,
        topic_id=topic.topic_id or ZERO_UUID,
        partitions=[
            OffsetFetchResponsePartitions(
                partition_index=index, committed_offset=-1, metadata="", error_code=code
            )
            for index in topic.partition_indexes
        ],
    )


def _single(group: OffsetFetchResponseGroup) -> OffsetFetchResponse:
    return OffsetFetchResponse(
        error_code=group.error_code,
        topics=[
            OffsetFetchResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetFetchResponsePartition(
                        partition_index=each.partition_index,
                        committed_offset=each.committed_offset,
                        committed_leader_epoch=each.committed_leader_epoch,
                        metadata=each.metadata,
                        error_code=each.error_code,
                    )
                    for each in topic.partitions
                ],
            )
            for topic in group.topics
        ],
    )
