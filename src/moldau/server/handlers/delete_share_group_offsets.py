"""DeleteShareGroupOffsets (key 92), version 0 (KIP-932): deletes offsets of an empty share group.

Requires DELETE on GROUP, and READ on TOPIC for each topic; a topic without it gets
TOPIC_AUTHORIZATION_FAILED.
"""

from __future__ import annotations

from moldau.base.errors import ErrorCode, KafkaError
from moldau.controller.errors import default_error
from moldau.groups.shard import GroupShard
from moldau.protocol.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsResponseTopic,
)
from moldau.security.acl.permissions import DELETE_GROUP, READ_TOPIC
from moldau.server.coordinators.coordinator import Coordinator
from moldau.server.dispatch.context import RequestContext
from moldau.server.publisher import MetadataPublisher
from moldau.server.share.persister import Persister
from moldau.server.share.settings import ShareGroupConfigs


async def handle(
    groups: Coordinator[GroupShard],
    persister: Persister,
    share_configs: ShareGroupConfigs,
    metadata: MetadataPublisher,
    context: RequestContext,
    request: DeleteShareGroupOffsetsRequest,
) -> DeleteShareGroupOffsetsResponse:
    try:
        share_configs.check_enabled()
        context.require(DELETE_GROUP, request.group_id)
        if not request.group_id:
            raise KafkaError(ErrorCode.INVALID_GROUP_ID)
        denied = _take_denied(context, request)
        deleted = await _delete(groups, persister, metadata, request)
        return DeleteShareGroupOffsetsResponse(responses=[*denied, *deleted])
    except KafkaError as error:
        return DeleteShareGroupOffsetsResponse(error_code=error.code, error_message=str(error))


def _take_denied(
    context: RequestContext, request: DeleteShareGroupOffsetsRequest
) -> list[DeleteShareGroupOffsetsResponseTopic]:
    """Take the topics that the client may not read out of the request; return their responses."""
    denied = context.unauthorized(READ_TOPIC, (topic.topic_name for topic in request.topics))
    refused = [topic for topic in request.topics if topic.topic_name in denied]
    request.topics = [topic for topic in request.topics if topic.topic_name not in denied]
    return [
        DeleteShareGroupOffsetsResponseTopic(
            topic_name=topic.topic_name,
            error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            error_message=default_error(ErrorCode.TOPIC_AUTHORIZATION_FAILED).message,
        )
        for topic in refused
    ]


async def _delete(
    groups: Coordinator[GroupShard],
    persister: Persister,
    metadata: MetadataPublisher,
    request: DeleteShareGroupOffsetsRequest,
) -> list[DeleteShareGroupOffsetsResponseTopic]:
    group_id = request.group_id
    deleting = await groups.write(group_id, lambda shard: shard.share.offsets.delete(request))
    if deleting.state is None:
        return deleting.refused
    failures = await persister.delete(deleting.state)
    refused = list(deleting.refused)
    for topic_id, failed in failures.items():
        topic = metadata.image.topics.by_id.get(topic_id)
        error = next(iter(failed.values()))
        refused.append(
            DeleteShareGroupOffsetsResponseTopic(
                topic_name="" if topic is None else topic.name,
                topic_id=topic_id,
                error_code=error.code,
                error_message=str(error),
            )
        )
    gone = [topic_id for topic_id in deleting.state.partitions if topic_id not in failures]
    if not gone:
        return refused
    done = await groups.write(group_id, lambda shard: shard.share.offsets.deleted(group_id, gone))
    return [*done, *refused]
