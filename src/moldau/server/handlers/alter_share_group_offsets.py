"""AlterShareGroupOffsets (key 91), version 0 (KIP-932): sets the start offsets of an empty share group.

Requires READ on GROUP, and READ on TOPIC for each topic; the partitions of a topic without it get
TOPIC_AUTHORIZATION_FAILED.
"""

from __future__ import annotations

from moldau.base.errors import ErrorCode, KafkaError
from moldau.groups.shard import GroupShard
from moldau.protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
    AlterShareGroupOffsetsResponsePartition,
    AlterShareGroupOffsetsResponseTopic,
)
from moldau.security.acl.permissions import READ_GROUP, READ_TOPIC
from moldau.server.coordinators.coordinator import Coordinator
from moldau.server.dispatch.context import RequestContext
from moldau.server.share.persister import Failures, Persister
from moldau.server.share.settings import ShareGroupConfigs


async def handle(
    groups: Coordinator[GroupShard],
    persister: Persister,
    share_configs: ShareGroupConfigs,
    context: RequestContext,
    request: AlterShareGroupOffsetsRequest,
) -> AlterShareGroupOffsetsResponse:
    try:
        share_configs.check_enabled()
        context.require(READ_GROUP, request.group_id)
        if not request.group_id:
            raise KafkaError(ErrorCode.INVALID_GROUP_ID)
        denied = _take_denied(context, request)
        response = await _alter(groups, persister, request)
        response.responses = [*response.responses, *denied]
        return response
    except KafkaError as error:
        return AlterShareGroupOffsetsResponse(error_code=error.code, error_message=str(error))


def _take_denied(
    context: RequestContext, request: AlterShareGroupOffsetsRequest
) -> list[AlterShareGroupOffsetsResponseTopic]:
    """Take the topics that the client may not read out of the request; return their responses."""
    denied = context.unauthorized(READ_TOPIC, (topic.topic_name for topic in request.topics))
    refused = [topic for topic in request.topics if topic.topic_name in denied]
    request.topics = [topic for topic in request.topics if topic.topic_name not in denied]
    return [
        AlterShareGroupOffsetsResponseTopic(
            topic_name=topic.topic_name,
            partitions=[
                AlterShareGroupOffsetsResponsePartition(
                    partition_index=each.partition_index, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED
                )
                for each in topic.partitions
            ],
        )
        for topic in refused
    ]


async def _alter(
    groups: Coordinator[GroupShard],
    persister: Persister,
    request: AlterShareGroupOffsetsRequest,
) -> AlterShareGroupOffsetsResponse:
    group_id = request.group_id
    altered = await groups.write(group_id, lambda shard: shard.share.offsets.alter(request))
    if not altered.state.offsets:
        return altered.response
    failures = await persister.initialize(altered.state)
    if failures:
        _set_errors(altered.response, failures)
    else:
        made = {topic_id: list(offsets) for topic_id, offsets in altered.state.offsets.items()}
        await groups.write(group_id, lambda shard: shard.share.offsets.initialized(group_id, made))
    return altered.response


def _set_errors(response: AlterShareGroupOffsetsResponse, failures: Failures) -> None:
    for topic in response.responses:
        for partition in topic.partitions:
            error = failures.get(topic.topic_id, {}).get(partition.partition_index)
            if error is not None and partition.error_code == ErrorCode.NONE:
                partition.error_code, partition.error_message = error.code, str(error)
