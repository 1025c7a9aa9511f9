"""Metadata (key 3), versions 0 to 13: brokers and topics as the image has them.

A topic that does not exist is created when the client allows it and `auto.create.topics.enable` is on.
Unlike Apache Kafka the answer waits for the creation, so clients need no second round.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING

from moldau.base.errors import ErrorCode
from moldau.base.ids import ZERO_UUID
from moldau.controller.topics import topic_name_problem
from moldau.metadata.image import MetadataImage, PartitionRegistration, TopicImage
from moldau.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from moldau.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from moldau.server.context import RequestContext

if TYPE_CHECKING:
    from moldau.server.node import Node

INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
#: Nobody has left a leader: what Kafka puts in place of an id.
NO_LEADER = -1


def handle(
    node: Node, context: RequestContext, request: MetadataRequest
) -> MetadataResponse | Awaitable[MetadataResponse]:
    missing = _to_create(node, context, request)
    if missing:
        return _create_and_answer(node, context, request, missing)
    return _answer(node, context, request, {})


async def _create_and_answer(
    node: Node, context: RequestContext, request: MetadataRequest, names: list[str]
) -> MetadataResponse:
    topics = [CreatableTopic(name=name, num_partitions=-1, replication_factor=-1) for name in names]
    created = await node.controller_channel.create_topics(context, CreateTopicsRequest(topics=topics))
    errors = {topic.name: topic.error_code for topic in created.topics if topic.error_code}
    return _answer(node, context, request, errors)


def _to_create(node: Node, context: RequestContext, request: MetadataRequest) -> list[str]:
    if not (request.allow_auto_topic_creation and node.config["auto.create.topics.enable"]):
        return []
    known = node.image.topics.by_name
    return list(
        {
            topic.name: None
            for topic in request.topics or ()
            if topic.name is not None
            and topic.topic_id == ZERO_UUID
            and topic.name not in known
            and topic_name_problem(topic.name) is None
        }
    )


def _answer(
    node: Node, context: RequestContext, request: MetadataRequest, errors: dict[str, int]
) -> MetadataResponse:
    image = node.image
    version = context.api_version
    if request.topics is None or (version == 0 and not request.topics):
        topics = [_topic(image, topic, version) for topic in image.topics.by_name.values()]
    else:
        topics = [_requested(image, asked, version, errors) for asked in request.topics]
    return MetadataResponse(
        brokers=brokers(image, context.listener_name),
        cluster_id=node.cluster_id,
        controller_id=node.any_broker_id(),
        topics=topics,
    )


def brokers(image: MetadataImage, listener_name: str) -> list[MetadataResponseBroker]:
    result = []
    for broker in image.cluster.brokers.values():
        endpoint = broker.endpoint(listener_name)
        if endpoint is not None and not broker.fenced:
            result.append(
                MetadataResponseBroker(
                    node_id=broker.id, host=endpoint.host, port=endpoint.port, rack=broker.rack
                )
            )
    return result


def _requested(
    image: MetadataImage, asked: MetadataRequestTopic, version: int, errors: dict[str, int]
) -> MetadataResponseTopic:
    if asked.topic_id != ZERO_UUID:
        known = image.topics.by_id.get(asked.topic_id)
        if known is None:
            return _failed(asked, ErrorCode.UNKNOWN_TOPIC_ID, version)
        return _topic(image, known, version)
    if asked.name is None:
        return _failed(asked, ErrorCode.INVALID_REQUEST, version)
    known = image.topics.by_name.get(asked.name)
    if known is not None:
        return _topic(image, known, version)
    if topic_name_problem(asked.name) is not None:
        return _failed(asked, ErrorCode.INVALID_TOPIC_EXCEPTION, version)
    return _failed(asked, errors.get(asked.name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), version)


def _failed(asked: MetadataRequestTopic, code: int, version: int) -> MetadataResponseTopic:
    name = asked.name if asked.name is not None or version >= 12 else ""
    return MetadataResponseTopic(
        error_code=code, name=name, topic_id=asked.topic_id, is_internal=name in INTERNAL_TOPICS
    )


def _topic(image: MetadataImage, topic: TopicImage, version: int) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.id,
        is_internal=topic.name in INTERNAL_TOPICS,
        partitions=[
            _partition(image, index, each, version) for index, each in sorted(topic.partitions.items())
        ],
    )


def offline_replicas(image: MetadataImage, partition: PartitionRegistration) -> list[int]:
    """Replicas on brokers that are gone or fenced, or in directories that are offline."""
    offline = []
    for replica in partition.replicas:
        broker = image.cluster.brokers.get(replica)
        if (
            broker is None
            or broker.fenced
            or not broker.has_online_directory(partition.directory_of(replica))
        ):
            offline.append(replica)
    return offline


def partition_error(image: MetadataImage, partition: PartitionRegistration) -> ErrorCode:
    broker = image.cluster.brokers.get(partition.leader)
    if broker is None or broker.fenced:
        return ErrorCode.LEADER_NOT_AVAILABLE
    return ErrorCode.NONE


def _partition(
    image: MetadataImage, index: int, partition: PartitionRegistration, version: int
) -> MetadataResponsePartition:
    error = partition_error(image, partition)
    return MetadataResponsePartition(
        error_code=error,
        partition_index=index,
        leader_id=partition.leader if error == ErrorCode.NONE else NO_LEADER,
        leader_epoch=partition.leader_epoch,
        replica_nodes=list(partition.replicas),
        isr_nodes=list(partition.isr),
        offline_replicas=offline_replicas(image, partition),
    )
