"""DeleteTopics (key 20), versions 1 to 6: decided by the controller."""

from __future__ import annotations

from collections.abc import Awaitable

from moldau.controller.topics.lifecycle import delete_topics
from moldau.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from moldau.server.controller.channel import ControllerChannel
from moldau.server.dispatch.context import RequestContext


def handle(
    controller: ControllerChannel, context: RequestContext, request: DeleteTopicsRequest
) -> Awaitable[DeleteTopicsResponse]:
    return controller.decide(context, request, delete_topics)
