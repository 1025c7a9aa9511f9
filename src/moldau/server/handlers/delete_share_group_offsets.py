"""DeleteShareGroupOffsets (key 92), version 0 (KIP-932): deletes offsets of an empty share group."""

from __future__ import annotations

from moldau.base.errors import ErrorCode, KafkaError
from moldau.groups.shard import GroupShard
from moldau.protocol.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsResponseTopic,
)
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
        if not request.group_id:
            raise KafkaError(ErrorCode.INVALID_GROUP_ID)
        return DeleteShareGroupOffsetsResponse(responses=await _delete(groups, persister, metadata, request))
    except KafkaError as error:
        return DeleteShareGroupOffsetsResponse(error_code=error.code, error_message=str(error))


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
