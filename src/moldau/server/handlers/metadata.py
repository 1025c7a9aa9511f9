"""Metadata (key 3), versions 0 to 13: brokers and topics as the image has them.

A topic that does not exist is created when the client allows it and `auto.create.topics.enable` is on.
Unlike Apache Kafka the answer waits for the creation, so clients need no second round.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Collection, Iterable
from typing import TYPE_CHECKING

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import INTERNAL_TOPICS, ZERO_UUID
from moldau.controller.topics.lifecycle import create_topics
from moldau.controller.topics.names import topic_name_problem
from moldau.metadata.image import MetadataImage, PartitionRegistration, TopicImage
from moldau.protocol.messages.create_topics import CreateTopicsRequest
from moldau.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from moldau.server.authorized_operations import CLUSTER_OPERATIONS, NOT_ASKED, TOPIC_OPERATIONS
from moldau.server.coordinators.internal_topics import CREATION_SECONDS, creatable
from moldau.server.dispatch.context import RequestContext

if TYPE_CHECKING:
    from moldau.server.node import Node

log = logging.getLogger(__name__)

#: Nobody has left a leader: what Kafka puts in place of an id.
NO_LEADER = -1
#: The version since which topics can be asked for by id.
_IDS_SINCE = 12
#: Why a topic could not be created, where that is the client's to know; anything else may pass.
_TOLD = frozenset({ErrorCode.INVALID_TOPIC_EXCEPTION, ErrorCode.POLICY_VIOLATION})


def handle(
    node: Node, context: RequestContext, request: MetadataRequest
) -> MetadataResponse | Awaitable[MetadataResponse]:
    if not _well_formed(request, context.api_version):
        return _refused(request)
    missing = _to_create(node, request)
    if missing:
        return _create_and_answer(node, context, request, missing)
    if node.suspects:
        return _answer_later(node, context, request)
    return _answer(node, context, request, {})


async def _answer_later(node: Node, context: RequestContext, request: MetadataRequest) -> MetadataResponse:
    """A broker may have died a moment ago: who leads instead is about to be known."""
    await node.suspects.settled()
    return _answer(node, context, request, {})


def _well_formed(request: MetadataRequest, version: int) -> bool:
    for topic in request.topics or ():
        by_id = topic.topic_id != ZERO_UUID
        if by_id and version < _IDS_SINCE:
            return False
        if not by_id and topic.name is None:
            return False
    return True


def _refused(request: MetadataRequest) -> MetadataResponse:
    code = ErrorCode.INVALID_REQUEST
    return MetadataResponse(
        topics=[
            MetadataResponseTopic(error_code=code, name=topic.name or "", topic_id=topic.topic_id)
            for topic in request.topics or ()
        ],
        error_code=code,
    )


async def _create_and_answer(
    node: Node, context: RequestContext, request: MetadataRequest, names: list[str]
) -> MetadataResponse:
    topics = [creatable(node.config, name) for name in names]
    try:
        async with asyncio.timeout(CREATION_SECONDS):
            created = await node.controller_channel.decide(
                context, CreateTopicsRequest(topics=topics), create_topics
            )
    except (KafkaError, TimeoutError) as error:
        log.warning("topics %s cannot be created now: %s", ", ".join(names), error)
        return _answer(node, context, request, {})
    errors = {topic.name: topic.error_code for topic in created.topics if topic.error_code in _TOLD}
    return _answer(node, context, request, errors)


def _to_create(node: Node, request: MetadataRequest) -> list[str]:
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
    if request.topics is None or (context.api_version == 0 and not request.topics):
        topics = [_topic(image, topic) for topic in image.topics.by_name.values()]
    else:
        topics = [_requested(image, asked, errors) for asked in _each_once(request.topics)]
    if request.include_topic_authorized_operations:
        for topic in topics:
            if topic.error_code != ErrorCode.UNKNOWN_TOPIC_ID:
                topic.topic_authorized_operations = TOPIC_OPERATIONS
    return MetadataResponse(
        brokers=brokers(image, context.listener_name, node.suspects.departed()),
        cluster_id=node.cluster_id,
        controller_id=node.any_broker_id(),
        topics=topics,
        cluster_authorized_operations=(
            CLUSTER_OPERATIONS if request.include_cluster_authorized_operations else NOT_ASKED
        ),
    )


def _each_once(asked: Iterable[MetadataRequestTopic]) -> Iterable[MetadataRequestTopic]:
    """Without repetitions; if any is asked for by id, the others are left out."""
    by_id = {topic.topic_id: topic for topic in asked if topic.topic_id != ZERO_UUID}
    return by_id.values() if by_id else {topic.name: topic for topic in asked}.values()


def brokers(
    image: MetadataImage, listener_name: str, departed: Collection[int] = ()
) -> list[MetadataResponseBroker]:
    """Those that are alive, and those that have only just `departed`."""
    result = []
    for broker in image.cluster.brokers.values():
        endpoint = broker.endpoint(listener_name)
        if endpoint is not None and (not broker.fenced or broker.id in departed):
            result.append(
                MetadataResponseBroker(
                    node_id=broker.id, host=endpoint.host, port=endpoint.port, rack=broker.rack
                )
            )
    return result


def _requested(
    image: MetadataImage, asked: MetadataRequestTopic, errors: dict[str, int]
) -> MetadataResponseTopic:
    name = asked.name
    if asked.topic_id != ZERO_UUID or name is None:
        known = image.topics.by_id.get(asked.topic_id)
        if known is None:
            return MetadataResponseTopic(
                error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=None, topic_id=asked.topic_id
            )
        return _topic(image, known)
    known = image.topics.by_name.get(name)
    if known is not None:
        return _topic(image, known)
    code: int = ErrorCode.INVALID_TOPIC_EXCEPTION
    if topic_name_problem(name) is None:
        code = errors.get(name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return MetadataResponseTopic(error_code=code, name=name, is_internal=name in INTERNAL_TOPICS)


def _topic(image: MetadataImage, topic: TopicImage) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.id,
        is_internal=topic.name in INTERNAL_TOPICS,
        partitions=[_partition(image, index, each) for index, each in sorted(topic.partitions.items())],
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
    image: MetadataImage, index: int, partition: PartitionRegistration
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
