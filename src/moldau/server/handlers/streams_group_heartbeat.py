"""StreamsGroupHeartbeat (key 88), version 0 (KIP-1071): members of streams groups join, report and leave.

Missing internal topics are created on behalf of the client; the response does not wait for them.

Requires READ on GROUP, and DESCRIBE on TOPIC for all topics of the topology. Creation requires CREATE on
CLUSTER or CREATE on TOPIC; without it the status MISSING_INTERNAL_TOPICS names the topics.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import INTERNAL_TOPICS
from moldau.controller.topics.names import topic_name_problem
from moldau.groups.settings import GroupSettings
from moldau.groups.shard import GroupShard
from moldau.groups.streams.checks import check_request
from moldau.groups.streams.statuses import StatusCode
from moldau.protocol.messages.create_topics import CreatableTopic
from moldau.protocol.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    Topology,
)
from moldau.security.acl.permissions import CREATE_CLUSTER, CREATE_TOPIC, DESCRIBE_TOPIC, READ_GROUP
from moldau.server.coordinators.coordinator import Coordinator
from moldau.server.coordinators.group_requests import check_streams_protocol, requester
from moldau.server.coordinators.streams_topics import StreamsTopics
from moldau.server.dispatch.context import RequestContext
from moldau.server.publisher import MetadataPublisher
from moldau.server.settings import NodeSettings

_MAX_REASONS = 3


async def handle(
    groups: Coordinator[GroupShard],
    topics: StreamsTopics,
    settings: NodeSettings,
    metadata: MetadataPublisher,
    context: RequestContext,
    request: StreamsGroupHeartbeatRequest,
) -> StreamsGroupHeartbeatResponse:
    try:
        check_streams_protocol(settings.config, metadata.image)
        context.require(READ_GROUP, request.group_id)
        if request.topology is not None:
            _check_topics(context, request.topology)
        check_request(request)
        result = await groups.write(
            request.group_id, lambda shard: shard.streams.heartbeats.heartbeat(requester(context), request)
        )
    except KafkaError as error:
        return StreamsGroupHeartbeatResponse(error_code=error.code, error_message=error.message or None)
    if result.missing_topics:
        denied = _may_not_create(context, result.missing_topics)
        if not denied:
            configs = GroupSettings.from_config(settings.config)
            interval_ms = configs.of_group(metadata.image, request.group_id, "streams.heartbeat.interval.ms")
            topics.create(context, result.missing_topics, retry_ms=2 * interval_ms)
        _explain_missing(result.response, denied, topics.failures(result.missing_topics))
    return result.response


def _check_topics(context: RequestContext, topology: Topology) -> None:
    """Check the names of all topics of a topology, and that the client may describe them."""
    names = {
        name: None
        for each in topology.subtopologies
        for name in (
            *each.source_topics,
            *each.repartition_sink_topics,
            *(topic.name for topic in each.repartition_source_topics),
            *(topic.name for topic in each.state_changelog_topics),
        )
    }
    internal = [name for name in names if name in INTERNAL_TOPICS]
    if internal:
        raise KafkaError(
            ErrorCode.STREAMS_INVALID_TOPOLOGY,
            f"Use of Kafka internal topics {','.join(internal)} in a Kafka Streams topology is prohibited.",
        )
    illegal = [name for name in names if topic_name_problem(name) is not None]
    if illegal:
        raise KafkaError(
            ErrorCode.STREAMS_INVALID_TOPOLOGY,
            f"Topic names {','.join(illegal)} are not valid topic names.",
        )
    if context.unauthorized(DESCRIBE_TOPIC, names):
        raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "")


def _may_not_create(context: RequestContext, names: Mapping[str, CreatableTopic]) -> list[str]:
    if context.allows(CREATE_CLUSTER, log_denied=False):
        return []
    return sorted(context.unauthorized(CREATE_TOPIC, names))


def _explain_missing(
    response: StreamsGroupHeartbeatResponse, denied: Sequence[str], failures: Mapping[str, str]
) -> None:
    """Add to the status why missing topics are not created."""
    if denied:
        reason = f"; Unauthorized to CREATE on topics {', '.join(denied)}."
    elif failures:
        named = [f"{name} ({text})" for name, text in list(failures.items())[:_MAX_REASONS]]
        more = len(failures) - _MAX_REASONS
        reason = f"; Creation failed: {', '.join(named)}{f' and {more} more' if more > 0 else ''}."
    else:
        return
    for status in response.status or ():
        if status.status_code == StatusCode.MISSING_INTERNAL_TOPICS:
            status.status_detail += reason
