"""DeleteTopics (key 20), versions 1 to 6: deletes topics; decided by the controller.

- 2: on quota violation the broker responds before throttling (KIP-219)
- 3: TOPIC_DELETION_DISABLED (KIP-322)
- 4: flexible
- 5: error message; THROTTLING_QUOTA_EXCEEDED (KIP-599)
- 6: topic ids (KIP-516)

Requires DELETE on CLUSTER, or DELETE on TOPIC for each topic; without it the topic gets
TOPIC_AUTHORIZATION_FAILED. Without DESCRIBE on TOPIC the response tells neither whether a name exists nor the
name of an id.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Iterable
from typing import TypeVar

from moldau.base.errors import ErrorCode
from moldau.base.ids import ZERO_UUID, TopicId
from moldau.controller.errors import default_error
from moldau.controller.topics.lifecycle import delete_topics
from moldau.metadata.image import MetadataImage
from moldau.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from moldau.security.acl.permissions import DELETE_CLUSTER, DELETE_TOPIC, DESCRIBE_TOPIC
from moldau.server.controller.authorization import Authorized, unchanged
from moldau.server.controller.channel import ControllerChannel
from moldau.server.dispatch.context import RequestContext
from moldau.server.publisher import MetadataPublisher

T = TypeVar("T")


def handle(
    controller: ControllerChannel,
    metadata: MetadataPublisher,
    context: RequestContext,
    request: DeleteTopicsRequest,
) -> Awaitable[DeleteTopicsResponse]:
    def authorize(
        context: RequestContext, request: DeleteTopicsRequest
    ) -> Authorized[DeleteTopicsRequest, DeleteTopicsResponse]:
        if context.listener.authorizer is None or context.allows(DELETE_CLUSTER, log_denied=False):
            return Authorized(request, unchanged)
        return _Authorization(context, metadata.image).split(request)

    return controller.decide(context, request, delete_topics, authorize)


class _Authorization:
    """The topics of a request that the client may delete, and the results of the others.

    Duplicates are refused without a check: they are not deleted, whatever the permissions are.
    """

    def __init__(self, context: RequestContext, image: MetadataImage) -> None:
        self._context = context
        self._image = image

    def split(self, request: DeleteTopicsRequest) -> Authorized[DeleteTopicsRequest, DeleteTopicsResponse]:
        named = [each.name for each in request.topics if each.name is not None and each.topic_id == ZERO_UUID]
        names = _once([*request.topic_names, *named])
        ids = _once(each.topic_id for each in request.topics if each.name is None)
        by_name = {name: result for name in names if (result := self._refusal(name)) is not None}
        by_id = {each: result for each in ids if (result := self._refusal_by_id(each)) is not None}

        def complete(response: DeleteTopicsResponse) -> DeleteTopicsResponse:
            results = [*response.responses, *by_name.values(), *by_id.values()]
            # The position must not distinguish topics that do not exist from those that are hidden.
            response.responses = sorted(results, key=lambda each: (each.name or "", each.topic_id))
            return response

        def is_refused(topic: DeleteTopicState) -> bool:
            if topic.name is None:
                return topic.topic_id in by_id
            return topic.topic_id == ZERO_UUID and topic.name in by_name

        allowed = DeleteTopicsRequest(
            topic_names=[name for name in request.topic_names if name not in by_name],
            topics=[each for each in request.topics if not is_refused(each)],
            timeout_ms=request.timeout_ms,
        )
        return Authorized(allowed, complete)

    def _refusal(self, name: str) -> DeletableTopicResult | None:
        if not self._context.allows(DESCRIBE_TOPIC, name):
            return _refused(name)
        if self._context.allows(DELETE_TOPIC, name):
            return None
        exists = name in self._image.topics.by_name
        return _refused(name) if exists else _refused(name, code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)

    def _refusal_by_id(self, topic_id: TopicId) -> DeletableTopicResult | None:
        if topic_id == ZERO_UUID:
            return None
        topic = self._image.topics.by_id.get(topic_id)
        if topic is None:
            return _refused(None, topic_id, ErrorCode.UNKNOWN_TOPIC_ID)
        if self._context.allows(DELETE_TOPIC, topic.name):
            return None
        return _refused(topic.name if self._context.allows(DESCRIBE_TOPIC, topic.name) else None, topic_id)


def _once(items: Iterable[T]) -> list[T]:
    return [item for item, count in Counter(items).items() if count == 1]


def _refused(
    name: str | None,
    topic_id: TopicId = ZERO_UUID,
    code: ErrorCode = ErrorCode.TOPIC_AUTHORIZATION_FAILED,
) -> DeletableTopicResult:
    return DeletableTopicResult(
        name=name, topic_id=topic_id, error_code=code, error_message=default_error(code).message
    )
