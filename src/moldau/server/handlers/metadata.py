"""Metadata (key 3), versions 0 to 13: the brokers, and topics with their partitions.

- 1: null instead of an empty list for all topics; rack, controller id and internal topics
- 2: cluster id (KIP-78)
- 3: throttle time
- 4: `allow_auto_topic_creation`
- 5: offline replicas (KIP-112)
- 6: on quota violation the broker responds before throttling (KIP-219)
- 7: leader epoch (KIP-320)
- 8: authorized operations (KIP-430)
- 9: flexible
- 10: topic ids in responses (KIP-516)
- 11: no cluster authorized operations any more, see DescribeCluster (KIP-700)
- 12: topics may be requested by id (KIP-516)
- 13: top-level error code (KIP-1102)

A missing topic is created if the client allows it and `auto.create.topics.enable` is set. Unlike Apache
Kafka, the response waits for the creation, so that clients need no second request.

Requires DESCRIBE on TOPIC: a requested topic without it gets TOPIC_AUTHORIZATION_FAILED whether it exists or
not, and a list of all topics leaves it out. An unknown topic id is UNKNOWN_TOPIC_ID for every client.
Creation requires CREATE on CLUSTER or CREATE on TOPIC. The authorized operations of the cluster are 0 without
DESCRIBE on CLUSTER.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Collection, Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import NamedTuple

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
from moldau.security.acl.enums import ResourceType
from moldau.security.acl.permissions import CREATE_CLUSTER, CREATE_TOPIC, DESCRIBE_CLUSTER, DESCRIBE_TOPIC
from moldau.server.brokers.suspected_brokers import SuspectedBrokers
from moldau.server.controller.channel import ControllerChannel
from moldau.server.coordinators.internal_topics import CREATION_SECONDS, creatable
from moldau.server.dispatch.context import NOT_REQUESTED, RequestContext
from moldau.server.publisher import MetadataPublisher
from moldau.server.settings import NodeSettings
from moldau.server.startup.identity import Identity

logger = logging.getLogger(__name__)

#: The leader id of a partition without a leader.
NO_LEADER = -1
_TOPIC_IDS_SINCE = 12
_FIRST_BROKER_SECONDS = 5.0
#: Errors of a topic creation that are returned to the client; others are retriable.
_RETURNED = frozenset({ErrorCode.INVALID_TOPIC_EXCEPTION, ErrorCode.POLICY_VIOLATION})


@dataclass(frozen=True, slots=True)
class Dependencies:
    identity: Identity
    metadata: MetadataPublisher
    settings: NodeSettings
    controller: ControllerChannel
    suspected_brokers: SuspectedBrokers


def handle(
    dependencies: Dependencies, context: RequestContext, request: MetadataRequest
) -> MetadataResponse | Awaitable[MetadataResponse]:
    if not _is_valid(request, context.api_version):
        return _refused(request)
    if not _has_broker(dependencies.metadata.image):
        return _respond_with_a_broker(dependencies, context, request)
    return _answer(dependencies, context, request)


async def _respond_with_a_broker(
    dependencies: Dependencies, context: RequestContext, request: MetadataRequest
) -> MetadataResponse:
    """Wait a moment for a broker that is just starting.

    After a response without brokers, librdkafka sends nothing until its next refresh, half a minute later.
    """
    await dependencies.metadata.until(_has_broker, _FIRST_BROKER_SECONDS)
    answer = _answer(dependencies, context, request)
    return answer if isinstance(answer, MetadataResponse) else await answer


def _has_broker(image: MetadataImage) -> bool:
    return any(not broker.fenced for broker in image.cluster.brokers.values())


def _answer(
    dependencies: Dependencies, context: RequestContext, request: MetadataRequest
) -> MetadataResponse | Awaitable[MetadataResponse]:
    denied = _denied(dependencies, context, request)
    missing = _to_create(dependencies, request, denied)
    if missing:
        return _create_and_respond(dependencies, context, request, denied, missing)
    if dependencies.suspected_brokers:
        return _respond_after_failover(dependencies, context, request)
    return _respond(dependencies, context, request, denied, {})


class _Denied(NamedTuple):
    """The topics, by name, that the client may not describe, and the missing ones it may not create."""

    describe: AbstractSet[str] = frozenset()
    create: AbstractSet[str] = frozenset()


_NOTHING_DENIED = _Denied()


def _denied(dependencies: Dependencies, context: RequestContext, request: MetadataRequest) -> _Denied:
    if context.listener.authorizer is None:
        return _NOTHING_DENIED
    topics = dependencies.metadata.image.topics
    if _lists_all(context, request):
        return _Denied(context.unauthorized(DESCRIBE_TOPIC, topics.by_name, log_denied=False))
    asked = list(_each_once(request.topics or ()))
    known = {topics.by_id[each.topic_id].name for each in asked if each.topic_id in topics.by_id}
    named = {each.name for each in asked if each.name is not None and each.topic_id == ZERO_UUID}
    hidden = context.unauthorized(DESCRIBE_TOPIC, known | named)
    missing = named - hidden - topics.by_name.keys()
    if not missing or not _creates(dependencies, request):
        return _Denied(hidden)
    if context.allows(CREATE_CLUSTER, log_denied=False):
        return _Denied(hidden)
    return _Denied(hidden, context.unauthorized(CREATE_TOPIC, missing))


def _lists_all(context: RequestContext, request: MetadataRequest) -> bool:
    return request.topics is None or (context.api_version == 0 and not request.topics)


def _creates(dependencies: Dependencies, request: MetadataRequest) -> bool:
    enabled: bool = dependencies.settings.config["auto.create.topics.enable"]
    return request.allow_auto_topic_creation and enabled


async def _respond_after_failover(
    dependencies: Dependencies, context: RequestContext, request: MetadataRequest
) -> MetadataResponse:
    """Respond with the new leaders of a broker that may just have failed."""
    await dependencies.suspected_brokers.settled()
    # Topics may have been created meanwhile.
    return _respond(dependencies, context, request, _denied(dependencies, context, request), {})


def _is_valid(request: MetadataRequest, version: int) -> bool:
    for topic in request.topics or ():
        by_id = topic.topic_id != ZERO_UUID
        if by_id and version < _TOPIC_IDS_SINCE:
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


async def _create_and_respond(
    dependencies: Dependencies,
    context: RequestContext,
    request: MetadataRequest,
    denied: _Denied,
    names: list[str],
) -> MetadataResponse:
    topics = [creatable(dependencies.settings.config, name) for name in names]
    try:
        async with asyncio.timeout(CREATION_SECONDS):
            created = await dependencies.controller.decide(
                context, CreateTopicsRequest(topics=topics), create_topics
            )
    except (KafkaError, TimeoutError) as error:
        logger.warning("topics %s cannot be created now: %s", ", ".join(names), error)
        return _respond(dependencies, context, request, denied, {})
    errors = {topic.name: topic.error_code for topic in created.topics if topic.error_code in _RETURNED}
    return _respond(dependencies, context, request, denied, errors)


def _to_create(dependencies: Dependencies, request: MetadataRequest, denied: _Denied) -> list[str]:
    if not _creates(dependencies, request):
        return []
    known = dependencies.metadata.image.topics.by_name
    return list(
        {
            topic.name: None
            for topic in request.topics or ()
            if topic.name is not None
            and topic.topic_id == ZERO_UUID
            and topic.name not in known
            and topic.name not in denied.describe
            and topic.name not in denied.create
            and topic_name_problem(topic.name) is None
        }
    )


def _respond(
    dependencies: Dependencies,
    context: RequestContext,
    request: MetadataRequest,
    denied: _Denied,
    errors: dict[str, int],
) -> MetadataResponse:
    image, identity = dependencies.metadata.image, dependencies.identity
    if _lists_all(context, request):
        hidden = denied.describe
        topics = [_topic(image, topic) for name, topic in image.topics.by_name.items() if name not in hidden]
    else:
        topics = [_requested(image, asked, denied, errors) for asked in _each_once(request.topics or ())]
    if request.include_topic_authorized_operations:
        for topic in topics:
            if topic.name is not None and topic.error_code != ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                topic.topic_authorized_operations = context.authorized_operations(
                    ResourceType.TOPIC, topic.name
                )
    return MetadataResponse(
        brokers=brokers(image, context.listener.name, dependencies.suspected_brokers.recently_failed()),
        cluster_id=identity.cluster_id,
        controller_id=controller_id(image, identity.node_id),
        topics=topics,
        cluster_authorized_operations=(
            _cluster_operations(context) if request.include_cluster_authorized_operations else NOT_REQUESTED
        ),
    )


def _cluster_operations(context: RequestContext) -> int:
    """Return the authorized operations of the cluster, 0 if the client may not describe it."""
    return context.authorized_operations(ResourceType.CLUSTER) if context.allows(DESCRIBE_CLUSTER) else 0


def _each_once(asked: Iterable[MetadataRequestTopic]) -> Iterable[MetadataRequestTopic]:
    """Drop duplicates; if any topic is requested by id, drop those requested by name."""
    by_id = {topic.topic_id: topic for topic in asked if topic.topic_id != ZERO_UUID}
    return by_id.values() if by_id else {topic.name: topic for topic in asked}.values()


def controller_id(image: MetadataImage, node_id: int) -> int:
    """Return any unfenced broker, this one if possible: brokers forward requests to the controller."""
    unfenced = [each.id for each in image.cluster.brokers.values() if not each.fenced]
    return node_id if node_id in unfenced else next(iter(unfenced), -1)


def brokers(
    image: MetadataImage, listener_name: str, recently_failed: Collection[int] = ()
) -> list[MetadataResponseBroker]:
    """Return the unfenced brokers and those in `recently_failed`."""
    result = []
    for broker in image.cluster.brokers.values():
        endpoint = broker.endpoint(listener_name)
        if endpoint is not None and (not broker.fenced or broker.id in recently_failed):
            result.append(
                MetadataResponseBroker(
                    node_id=broker.id, host=endpoint.host, port=endpoint.port, rack=broker.rack
                )
            )
    return result


def _requested(
    image: MetadataImage, asked: MetadataRequestTopic, denied: _Denied, errors: dict[str, int]
) -> MetadataResponseTopic:
    name = asked.name
    if asked.topic_id != ZERO_UUID or name is None:
        known = image.topics.by_id.get(asked.topic_id)
        if known is None:
            return MetadataResponseTopic(
                error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=None, topic_id=asked.topic_id
            )
        if known.name in denied.describe:
            return MetadataResponseTopic(
                error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, name=None, topic_id=asked.topic_id
            )
        return _topic(image, known)
    if name in denied.describe:
        return MetadataResponseTopic(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, name=name)
    known = image.topics.by_name.get(name)
    if known is not None:
        return _topic(image, known)
    code: int = ErrorCode.INVALID_TOPIC_EXCEPTION
    if name in denied.create:
        code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    elif topic_name_problem(name) is None:
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
    """Return the replicas on unregistered or fenced brokers, and in offline directories."""
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
