"""DescribeTopicPartitions (key 75), version 0 (KIP-966): topics with eligible leader replicas, in pages.

Requires DESCRIBE on TOPIC: a requested topic without it gets TOPIC_AUTHORIZATION_FAILED whether it exists or
not, and a list of all topics leaves it out.
"""

from __future__ import annotations

from moldau.base.errors import ErrorCode
from moldau.base.ids import INTERNAL_TOPICS
from moldau.controller.topics.lifecycle import topic_name_problem
from moldau.metadata.image import MetadataImage, PartitionRegistration, TopicImage
from moldau.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from moldau.security.acl.enums import ResourceType
from moldau.security.acl.permissions import DESCRIBE_TOPIC
from moldau.server.dispatch.context import RequestContext
from moldau.server.handlers.metadata import NO_LEADER, offline_replicas, partition_error
from moldau.server.publisher import MetadataPublisher
from moldau.server.settings import NodeSettings


def handle(
    metadata: MetadataPublisher,
    settings: NodeSettings,
    context: RequestContext,
    request: DescribeTopicPartitionsRequest,
) -> DescribeTopicPartitionsResponse:
    image = metadata.image
    names = sorted({topic.name for topic in request.topics}) or sorted(image.topics.by_name)
    cursor = request.cursor
    if cursor is not None:
        if cursor.partition_index < 0 or (request.topics and cursor.topic_name not in names):
            return DescribeTopicPartitionsResponse(
                topics=[_failed(topic.name, ErrorCode.INVALID_REQUEST) for topic in request.topics]
            )
        names = [name for name in names if name >= cursor.topic_name]
    denied = context.unauthorized(DESCRIBE_TOPIC, names)
    refused = [name for name in names if name in denied] if request.topics else []
    names = [name for name in names if name not in denied]
    at_cursor = cursor is not None and names[:1] == [cursor.topic_name]
    first_partition = cursor.partition_index if cursor is not None and at_cursor else 0
    limit = settings.config["max.request.partition.size.limit"]
    left = max(1, min(request.response_partition_limit, limit))
    response = DescribeTopicPartitionsResponse()
    for name in names:
        if left <= 0:
            response.next_cursor = Cursor(topic_name=name, partition_index=0)
            break
        topic = image.topics.by_name.get(name)
        if topic is None:
            response.topics.append(_unknown(name))
            continue
        page = range(first_partition, min(len(topic.partitions), first_partition + left))
        response.topics.append(_topic(image, topic, page))
        left -= len(page)
        if page.stop < len(topic.partitions):
            response.next_cursor = Cursor(topic_name=name, partition_index=page.stop)
            break
        first_partition = 0
    for topic_response in response.topics:
        topic_response.topic_authorized_operations = context.authorized_operations(
            ResourceType.TOPIC, topic_response.name or ""
        )
    response.topics += [
        DescribeTopicPartitionsResponseTopic(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, name=name)
        for name in refused
    ]
    return response


def _unknown(name: str) -> DescribeTopicPartitionsResponseTopic:
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if topic_name_problem(name) is not None:
        code = ErrorCode.INVALID_TOPIC_EXCEPTION
    return _failed(name, code)


def _failed(name: str, code: ErrorCode) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        error_code=code, name=name, is_internal=name in INTERNAL_TOPICS
    )


def _topic(image: MetadataImage, topic: TopicImage, page: range) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        name=topic.name,
        topic_id=topic.id,
        is_internal=topic.name in INTERNAL_TOPICS,
        partitions=[_partition(image, index, topic.partitions[index]) for index in page],
    )


def _partition(
    image: MetadataImage, index: int, partition: PartitionRegistration
) -> DescribeTopicPartitionsResponsePartition:
    error = partition_error(image, partition)
    return DescribeTopicPartitionsResponsePartition(
        error_code=error,
        partition_index=index,
        leader_id=partition.leader if error == ErrorCode.NONE else NO_LEADER,
        leader_epoch=partition.leader_epoch,
        replica_nodes=list(partition.replicas),
        isr_nodes=list(partition.isr),
        eligible_leader_replicas=list(partition.elr),
        last_known_elr=list(partition.last_known_elr),
        offline_replicas=offline_replicas(image, partition),
    )
