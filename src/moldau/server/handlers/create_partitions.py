"""CreatePartitions (key 37), versions 0 to 3 (KIP-195): adds partitions to topics; decided by the controller.

- 1: on quota violation the broker responds before throttling (KIP-219)
- 2: flexible
- 3: THROTTLING_QUOTA_EXCEEDED (KIP-599)

Requires ALTER on TOPIC for each topic; without it the topic gets TOPIC_AUTHORIZATION_FAILED.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable

from moldau.base.errors import ErrorCode
from moldau.controller.topics.partitions import create_partitions
from moldau.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)
from moldau.security.acl.permissions import ALTER_TOPIC
from moldau.server.controller.authorization import Authorized, unchanged
from moldau.server.controller.channel import ControllerChannel
from moldau.server.dispatch.context import RequestContext


def handle(
    controller: ControllerChannel, context: RequestContext, request: CreatePartitionsRequest
) -> Awaitable[CreatePartitionsResponse]:
    return controller.decide(context, request, create_partitions, _authorize)


def _authorize(
    context: RequestContext, request: CreatePartitionsRequest
) -> Authorized[CreatePartitionsRequest, CreatePartitionsResponse]:
    times = Counter(topic.name for topic in request.topics)
    denied = context.unauthorized(ALTER_TOPIC, (name for name, count in times.items() if count == 1))
    if not denied:
        return Authorized(request, unchanged)

    def complete(response: CreatePartitionsResponse) -> CreatePartitionsResponse:
        response.results = [*response.results, *map(_refused, sorted(denied))]
        return response

    allowed = CreatePartitionsRequest(
        topics=[topic for topic in request.topics if topic.name not in denied],
        timeout_ms=request.timeout_ms,
        validate_only=request.validate_only,
    )
    return Authorized(allowed, complete)


def _refused(name: str) -> CreatePartitionsTopicResult:
    return CreatePartitionsTopicResult(name=name, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
