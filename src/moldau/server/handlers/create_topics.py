"""CreateTopics (key 19), versions 2 to 7: decided by the controller."""

from __future__ import annotations

from collections.abc import Awaitable

from moldau.controller.topics.lifecycle import create_topics
from moldau.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from moldau.server.controller.channel import ControllerChannel
from moldau.server.dispatch.context import RequestContext


def handle(
    controller: ControllerChannel, context: RequestContext, request: CreateTopicsRequest
) -> Awaitable[CreateTopicsResponse]:
    return controller.decide(context, request, create_topics)
