"""CreateTopics (key 19), versions 2 to 7: creates topics; decided by the controller.

- 3: on quota violation the broker responds before throttling (KIP-219)
- 4: -1 for the default number of partitions and replication factor (KIP-464)
- 5: flexible; the configs of created topics (KIP-525)
- 6: THROTTLING_QUOTA_EXCEEDED (KIP-599)
- 7: topic ids (KIP-516)

Requires CREATE on CLUSTER, or CREATE on TOPIC for each topic; without it the topic gets
TOPIC_AUTHORIZATION_FAILED. The response has the configs of topics with DESCRIBE_CONFIGS on TOPIC.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable
from collections.abc import Set as AbstractSet

from moldau.base.errors import ErrorCode
from moldau.base.ids import METADATA_TOPIC
from moldau.controller.topics.lifecycle import create_topics
from moldau.protocol.messages.create_topics import (
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from moldau.security.acl.permissions import CREATE_CLUSTER, CREATE_TOPIC, DESCRIBE_TOPIC_CONFIGS
from moldau.server.controller.authorization import Authorized, unchanged
from moldau.server.controller.channel import ControllerChannel
from moldau.server.dispatch.context import RequestContext


def handle(
    controller: ControllerChannel, context: RequestContext, request: CreateTopicsRequest
) -> Awaitable[CreateTopicsResponse]:
    return controller.decide(context, request, create_topics, _authorize)


def _authorize(
    context: RequestContext, request: CreateTopicsRequest
) -> Authorized[CreateTopicsRequest, CreateTopicsResponse]:
    if context.listener.authorizer is None:
        return Authorized(request, unchanged)
    times = Counter(topic.name for topic in request.topics)
    names = {name for name, count in times.items() if count == 1 and name != METADATA_TOPIC}
    denied: AbstractSet[str] = frozenset()
    if not context.allows(CREATE_CLUSTER, log_denied=False):
        denied = context.unauthorized(CREATE_TOPIC, names)
    hidden = context.unauthorized(DESCRIBE_TOPIC_CONFIGS, names, log_denied=False)

    def complete(response: CreateTopicsResponse) -> CreateTopicsResponse:
        for result in response.topics:
            if result.name in hidden and result.error_code == ErrorCode.NONE:
                _hide_configs(result)
        response.topics = [*response.topics, *map(_refused, sorted(denied))]
        return response

    allowed = CreateTopicsRequest(
        topics=[topic for topic in request.topics if topic.name not in denied],
        timeout_ms=request.timeout_ms,
        validate_only=request.validate_only,
    )
    return Authorized(allowed, complete)


def _refused(name: str) -> CreatableTopicResult:
    return CreatableTopicResult(
        name=name, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, error_message="Authorization failed."
    )


def _hide_configs(result: CreatableTopicResult) -> None:
    result.topic_config_error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    result.num_partitions = result.replication_factor = -1
    result.configs = []
