"""ShareAcknowledge (key 79), versions 1 to 2: members of share groups say what became of their records."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moldau.base.errors import ErrorCode, KafkaError
from moldau.groups.share.checks import is_member_id
from moldau.protocol.messages.share_acknowledge import (
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
    ShareAcknowledgeTopicResponse,
)
from moldau.server.brokers.current_leaders import CurrentLeaders
from moldau.server.dispatch.context import RequestContext
from moldau.server.share.acknowledgements import Acknowledgements, Outcomes
from moldau.server.share.sessions import FINAL_EPOCH, INITIAL_EPOCH, SessionKey
from moldau.server.share.settings import check_enabled, limits

if TYPE_CHECKING:
    from moldau.server.node import Node

_TELL_LEADER = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH})


async def handle(
    node: Node, context: RequestContext, request: ShareAcknowledgeRequest
) -> ShareAcknowledgeResponse:
    try:
        check_enabled(node)
        key = _go_on(node, request)
    except KafkaError as error:
        return ShareAcknowledgeResponse(error_code=error.code)
    acknowledgements = Acknowledgements(
        node,
        key.group_id,
        key.member_id,
        request.topics,
        version=context.api_version,
        renews=request.is_renew_ack,
    )
    outcomes = await acknowledgements.outcomes()
    if request.share_session_epoch == FINAL_EPOCH:
        node.share.release_session(key)
    return _response(node, context, key.group_id, outcomes)


def _go_on(node: Node, request: ShareAcknowledgeRequest) -> SessionKey:
    if request.group_id is None or not is_member_id(request.member_id):
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    key = SessionKey(request.group_id, request.member_id or "")
    if request.share_session_epoch == INITIAL_EPOCH:
        raise KafkaError(ErrorCode.INVALID_SHARE_SESSION_EPOCH)
    if request.share_session_epoch == FINAL_EPOCH:
        node.share.sessions.get(key)
    else:
        node.share.sessions.advance(key, request.share_session_epoch)
    return key


def _response(
    node: Node, context: RequestContext, group_id: str, outcomes: Outcomes
) -> ShareAcknowledgeResponse:
    leaders = CurrentLeaders(node.image, context.listener_name)
    topics: dict[bytes, ShareAcknowledgeTopicResponse] = {}
    for place, error in outcomes.items():
        answer = PartitionData(partition_index=place.partition)
        if error is not None:
            answer.error_code, answer.error_message = error.code, error.message
        if answer.error_code in _TELL_LEADER:
            leader = leaders.of("", place.topic_id, place.partition)
            if leader is not None:
                answer.current_leader = LeaderIdAndEpoch(leader_id=leader.id, leader_epoch=leader.epoch)
        topic = topics.setdefault(place.topic_id, ShareAcknowledgeTopicResponse(topic_id=place.topic_id))
        topic.partitions.append(answer)
    return ShareAcknowledgeResponse(
        acquisition_lock_timeout_ms=limits(node, group_id).lock_ms,
        responses=list(topics.values()),
        node_endpoints=[NodeEndpoint(**each) for each in leaders.endpoints],
    )
