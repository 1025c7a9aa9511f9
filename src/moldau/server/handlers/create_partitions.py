"""CreatePartitions (key 37), versions 0 to 3 (KIP-195): adds partitions to topics; decided by the controller.

- 1: on quota violation the broker responds before throttling (KIP-219)
- 2: flexible
- 3: THROTTLING_QUOTA_EXCEEDED (KIP-599)
"""

from __future__ import annotations

from collections.abc import Awaitable

from moldau.controller.topics.partitions import create_partitions
from moldau.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse
from moldau.server.controller.channel import ControllerChannel
from moldau.server.dispatch.context import RequestContext


def handle(
    controller: ControllerChannel, context: RequestContext, request: CreatePartitionsRequest
) -> Awaitable[CreatePartitionsResponse]:
    return controller.decide(context, request, create_partitions)
