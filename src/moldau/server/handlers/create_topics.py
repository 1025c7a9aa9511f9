"""CreateTopics (key 19), versions 2 to 7: creates topics; decided by the controller.

- 3: on quota violation the broker responds before throttling (KIP-219)
- 4: -1 for the default number of partitions and replication factor (KIP-464)
- 5: flexible; the configs of created topics (KIP-525)
- 6: THROTTLING_QUOTA_EXCEEDED (KIP-599)
- 7: topic ids (KIP-516)
"""

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
