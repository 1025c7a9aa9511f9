"""ShareAcknowledge (key 79), versions 1 to 2 (KIP-932): members of share groups acknowledge records.

- 2: renewal of acquisition locks (KIP-1222)

Requires READ on GROUP, and READ on TOPIC for each topic; the partitions of a topic without it get
TOPIC_AUTHORIZATION_FAILED.
"""

from __future__ import annotations

from moldau.base.errors import ErrorCode, KafkaError
from moldau.groups.share.checks import is_member_id
from moldau.metadata.image import MetadataImage
from moldau.protocol.messages.share_acknowledge import (
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
    ShareAcknowledgeTopicResponse,
)
from moldau.security.acl.permissions import READ_GROUP, READ_TOPIC
from moldau.server.brokers.current_leaders import CurrentLeaders
from moldau.server.dispatch.context import RequestContext
from moldau.server.publisher import MetadataPublisher
from moldau.server.share.acknowledgements import Acknowledgements, Outcomes
from moldau.server.share.sessions import FINAL_EPOCH, INITIAL_EPOCH, SessionKey
from moldau.server.share.settings import ShareGroupConfigs
from moldau.server.share.share_partition_manager import SharePartitionManager

_NOT_LEADER = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH})


async def handle(
    share_partitions: SharePartitionManager,
    share_configs: ShareGroupConfigs,
    metadata: MetadataPublisher,
    context: RequestContext,
    request: ShareAcknowledgeRequest,
) -> ShareAcknowledgeResponse:
    try:
        share_configs.check_enabled()
        key = _session_key(share_partitions, context, request)
    except KafkaError as error:
        return ShareAcknowledgeResponse(error_code=error.code)
    topics = metadata.image.topics.by_id
    names = (topics[each.topic_id].name for each in request.topics if each.topic_id in topics)
    acknowledgements = Acknowledgements(
        share_partitions,
        metadata.image,
        key.group_id,
        key.member_id,
        request.topics,
        version=context.api_version,
        renews=request.is_renew_ack,
        denied=context.unauthorized(READ_TOPIC, names),
    )
    outcomes = await acknowledgements.outcomes()
    if request.share_session_epoch == FINAL_EPOCH:
        share_partitions.release_session(key)
    lock_ms = share_configs.limits(key.group_id).lock_ms
    return _response(metadata.image, context, lock_ms, outcomes)


def _session_key(
    share_partitions: SharePartitionManager, context: RequestContext, request: ShareAcknowledgeRequest
) -> SessionKey:
    if request.group_id is None:
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    context.require(READ_GROUP, request.group_id)
    if not is_member_id(request.member_id):
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    key = SessionKey(request.group_id, request.member_id or "")
    if request.share_session_epoch == INITIAL_EPOCH:
        raise KafkaError(ErrorCode.INVALID_SHARE_SESSION_EPOCH)
    if request.share_session_epoch == FINAL_EPOCH:
        share_partitions.sessions.get(key)
    else:
        share_partitions.sessions.advance(key, request.share_session_epoch)
    return key


def _response(
    image: MetadataImage, context: RequestContext, lock_ms: int, outcomes: Outcomes
) -> ShareAcknowledgeResponse:
    leaders = CurrentLeaders(image, context.listener.name)
    topics: dict[bytes, ShareAcknowledgeTopicResponse] = {}
    for place, error in outcomes.items():
        answer = PartitionData(partition_index=place.partition)
        if error is not None:
            answer.error_code, answer.error_message = error.code, error.message
        if answer.error_code in _NOT_LEADER:
            leader = leaders.of("", place.topic_id, place.partition)
            if leader is not None:
                answer.current_leader = LeaderIdAndEpoch(leader_id=leader.id, leader_epoch=leader.epoch)
        topic = topics.setdefault(place.topic_id, ShareAcknowledgeTopicResponse(topic_id=place.topic_id))
        topic.partitions.append(answer)
    return ShareAcknowledgeResponse(
        acquisition_lock_timeout_ms=lock_ms,
        responses=list(topics.values()),
        node_endpoints=[NodeEndpoint(**each) for each in leaders.endpoints],
    )
