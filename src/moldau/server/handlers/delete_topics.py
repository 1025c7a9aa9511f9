"""DeleteTopics (key 20), versions 1 to 6: deletes topics; decided by the controller.

- 2: on quota violation the broker responds before throttling (KIP-219)
- 3: TOPIC_DELETION_DISABLED (KIP-322)
- 4: flexible
- 5: error message; THROTTLING_QUOTA_EXCEEDED (KIP-599)
- 6: topic ids (KIP-516)
"""

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
