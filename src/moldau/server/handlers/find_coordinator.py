"""FindCoordinator (key 10), versions 0 to 6: the coordinator of a group, transaction or share partition.

- 1: key type (KIP-98)
- 2: on quota violation the broker responds before throttling (KIP-219)
- 3: flexible
- 4: several keys (KIP-699)
- 5: TRANSACTION_ABORTABLE (KIP-890)
- 6: share partitions (KIP-932)

The first request creates the coordinator's topic. Unlike in Apache Kafka, the response waits for it. If it
cannot be created, or its partition has no leader, the error is COORDINATOR_NOT_AVAILABLE.

Requires DESCRIBE on GROUP or DESCRIBE on TRANSACTIONAL_ID for each key, and CLUSTER_ACTION on CLUSTER for
share partitions.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable
from collections.abc import Set as AbstractSet

from moldau.base.errors import ErrorCode
from moldau.base.ids import CONSUMER_OFFSETS_TOPIC, SHARE_STATE_TOPIC, TRANSACTION_STATE_TOPIC
from moldau.base.java_hash import partition_for_name
from moldau.controller.errors import default_error
from moldau.metadata.image import MetadataImage
from moldau.protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from moldau.security.acl.permissions import (
    CLUSTER_ACTION,
    DESCRIBE_GROUP,
    DESCRIBE_TRANSACTIONAL_ID,
    Permission,
)
from moldau.server.brokers.peers import endpoint_of
from moldau.server.coordinators.internal_topics import InternalTopics
from moldau.server.dispatch.context import RequestContext
from moldau.server.publisher import MetadataPublisher

GROUP, TRANSACTION, SHARE = 0, 1, 2
_TOPICS = {
    GROUP: CONSUMER_OFFSETS_TOPIC,
    TRANSACTION: TRANSACTION_STATE_TOPIC,
    SHARE: SHARE_STATE_TOPIC,
}
_PERMISSIONS: dict[int, Permission] = {GROUP: DESCRIBE_GROUP, TRANSACTION: DESCRIBE_TRANSACTIONAL_ID}
_DENIED = {
    GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    TRANSACTION: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    SHARE: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
}
_SHARE_KEY = re.compile(r"(.+):([A-Za-z0-9_-]{22}):([+-]?[0-9]{1,10})", re.DOTALL)
_SHARE_SINCE = 6
_BATCHED_SINCE = 4


def handle(
    metadata: MetadataPublisher,
    internal_topics: InternalTopics,
    context: RequestContext,
    request: FindCoordinatorRequest,
) -> FindCoordinatorResponse | Awaitable[FindCoordinatorResponse]:
    topic = _TOPICS.get(request.key_type)
    denied = _denied(context, request)
    is_unknown = request.key_type == SHARE and context.api_version < _SHARE_SINCE
    if is_unknown or denied >= set(_keys(context, request)):
        return _respond(metadata.image, context, request, topic, denied)
    if topic is not None and topic not in metadata.image.topics.by_name:
        return _create_and_respond(metadata, internal_topics, context, request, topic, denied)
    return _respond(metadata.image, context, request, topic, denied)


def _keys(context: RequestContext, request: FindCoordinatorRequest) -> list[str]:
    return request.coordinator_keys if context.api_version >= _BATCHED_SINCE else [request.key]


def _denied(context: RequestContext, request: FindCoordinatorRequest) -> AbstractSet[str]:
    """Return the keys whose coordinator the client may not find."""
    if request.key_type == SHARE:
        allowed = context.api_version < _SHARE_SINCE or context.allows(CLUSTER_ACTION)
        return frozenset() if allowed else set(_keys(context, request))
    permission = _PERMISSIONS.get(request.key_type)
    return frozenset() if permission is None else context.unauthorized(permission, _keys(context, request))


async def _create_and_respond(
    metadata: MetadataPublisher,
    internal_topics: InternalTopics,
    context: RequestContext,
    request: FindCoordinatorRequest,
    topic: str,
    denied: AbstractSet[str],
) -> FindCoordinatorResponse:
    await internal_topics.ensure(topic)
    return _respond(metadata.image, context, request, topic, denied)


def _respond(
    image: MetadataImage,
    context: RequestContext,
    request: FindCoordinatorRequest,
    topic: str | None,
    denied: AbstractSet[str],
) -> FindCoordinatorResponse:
    def find(key: str) -> Coordinator:
        if key in denied:
            return _refused(request.key_type, key)
        return _find(image, context, topic, key)

    if context.api_version >= _BATCHED_SINCE:
        return FindCoordinatorResponse(coordinators=[find(key) for key in request.coordinator_keys])
    found = find(request.key)
    return FindCoordinatorResponse(
        error_code=found.error_code,
        error_message=found.error_message or str(default_error(ErrorCode(found.error_code))),
        node_id=found.node_id,
        host=found.host,
        port=found.port,
    )


def _find(
    image: MetadataImage,
    context: RequestContext,
    topic: str | None,
    key: str,
) -> Coordinator:
    if topic is None:
        return _none(key, ErrorCode.INVALID_REQUEST, "There is no coordinator of this type.")
    if topic == SHARE_STATE_TOPIC and (context.api_version < _SHARE_SINCE or not _is_share_key(key)):
        return _none(key, ErrorCode.INVALID_REQUEST)
    leader = _leader(image, topic, key)
    endpoint = endpoint_of(image, leader, context.listener.name)
    if endpoint is None:
        return _none(key, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    return Coordinator(key=key, node_id=leader, host=endpoint.host, port=endpoint.port)


def _is_share_key(key: str) -> bool:
    """Return whether a key has the form `group:topic id:partition`."""
    found = _SHARE_KEY.fullmatch(key)
    return found is not None and bool(found[1].strip())


def _leader(image: MetadataImage, topic: str, key: str) -> int:
    found = image.topics.by_name.get(topic)
    if found is None:
        return -1
    return found.partitions[partition_for_name(key, len(found.partitions))].leader


def _refused(key_type: int, key: str) -> Coordinator:
    """Return the error of a key; only the permission of share partitions concerns the whole request."""
    error = default_error(_DENIED[key_type])
    return _none(key, error.code, str(error) if key_type == SHARE else "")


def _none(key: str, code: ErrorCode, message: str = "") -> Coordinator:
    return Coordinator(key=key, node_id=-1, host="", port=-1, error_code=code, error_message=message)
