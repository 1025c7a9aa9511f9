"""OffsetCommit (key 8), versions 2 to 10: commits the offsets of a group.

- 3: throttle time
- 4: on quota violation the broker responds before throttling (KIP-219)
- 5: no retention time any more (KIP-211)
- 6: leader epoch (KIP-320)
- 7: group instance id (KIP-345)
- 8: flexible
- 9: member epoch of the consumer protocol (KIP-848)
- 10: topic ids instead of names (KIP-848)

Requires READ on GROUP, and READ on TOPIC for each topic; the partitions of a topic without it get
TOPIC_AUTHORIZATION_FAILED. An unknown topic id is UNKNOWN_TOPIC_ID for every client.
"""

from __future__ import annotations

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import ZERO_UUID
from moldau.groups.shard import GroupShard
from moldau.metadata.image import MetadataImage, TopicImage
from moldau.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from moldau.security.acl.permissions import READ_GROUP, READ_TOPIC
from moldau.server.coordinators.coordinator import Coordinator
from moldau.server.coordinators.group_requests import known_partitions, requester
from moldau.server.dispatch.context import RequestContext
from moldau.server.publisher import MetadataPublisher

_TOPIC_IDS_SINCE = 10


async def handle(
    groups: Coordinator[GroupShard],
    metadata: MetadataPublisher,
    context: RequestContext,
    request: OffsetCommitRequest,
) -> OffsetCommitResponse:
    if not context.allows(READ_GROUP, request.group_id):
        code = ErrorCode.GROUP_AUTHORIZATION_FAILED
        return OffsetCommitResponse(topics=[_refusal(topic, code) for topic in request.topics])
    refused: list[OffsetCommitResponseTopic] = []
    accepted: list[OffsetCommitRequestTopic] = []
    for topic in request.topics:
        _sort(context, metadata.image, topic, refused, accepted)
    if not accepted:
        return OffsetCommitResponse(topics=refused)
    request.topics = accepted
    try:
        answer = await groups.write(
            request.group_id, lambda shard: shard.commit_offsets(requester(context), request)
        )
        answered = answer.topics
    except KafkaError as error:
        answered = [_refusal(topic, error.code) for topic in accepted]
    return OffsetCommitResponse(topics=_merged(refused, answered))


def _sort(
    context: RequestContext,
    image: MetadataImage,
    topic: OffsetCommitRequestTopic,
    refused: list[OffsetCommitResponseTopic],
    accepted: list[OffsetCommitRequestTopic],
) -> None:
    """Sort a topic into accepted and refused partitions; only existing ones are committed."""
    try:
        found = _authorized_topic(context, image, topic)
    except KafkaError as error:
        refused.append(_refusal(topic, error.code))
        return
    topic.name, topic.topic_id = found.name, found.id
    known, missing = known_partitions(image, found.name, topic.partitions)
    if missing:
        gone = OffsetCommitRequestTopic(name=found.name, topic_id=found.id, partitions=missing)
        refused.append(_refusal(gone, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
    if known:
        topic.partitions = known
        accepted.append(topic)


def _authorized_topic(
    context: RequestContext, image: MetadataImage, topic: OffsetCommitRequestTopic
) -> TopicImage:
    by_id = context.api_version >= _TOPIC_IDS_SINCE
    found = image.topics.by_id.get(topic.topic_id) if by_id else image.topics.by_name.get(topic.name)
    if by_id and found is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
    context.require(READ_TOPIC, topic.name if found is None else found.name)
    if found is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return found


def _refusal(topic: OffsetCommitRequestTopic, code: ErrorCode) -> OffsetCommitResponseTopic:
    return OffsetCommitResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id or ZERO_UUID,
        partitions=[
            OffsetCommitResponsePartition(partition_index=each.partition_index, error_code=code)
            for each in topic.partitions
        ],
    )


def _merged(
    refused: list[OffsetCommitResponseTopic], answered: list[OffsetCommitResponseTopic]
) -> list[OffsetCommitResponseTopic]:
    """Merge the results of each topic."""
    topics = {topic.topic_id if topic.topic_id != ZERO_UUID else topic.name: topic for topic in refused}
    for topic in answered:
        known = topics.setdefault(topic.topic_id, topic)
        if known is not topic:
            known.partitions = [*known.partitions, *topic.partitions]
    return list(topics.values())
