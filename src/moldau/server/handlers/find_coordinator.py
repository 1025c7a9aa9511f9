"""FindCoordinator (key 10), versions 0 to 6: there is no coordinator yet, and the answer says so.

It is announced all the same, because librdkafka compresses with lz4 only where it is. The answer is
COORDINATOR_NOT_AVAILABLE, with a sentence: librdkafka asks also when partitions are assigned by hand, and any
other error would reach an application that has no use for a coordinator.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from moldau.base.errors import ErrorCode
from moldau.protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from moldau.server.context import RequestContext

if TYPE_CHECKING:
    from moldau.server.node import Node

GROUP = 0
_NO_GROUPS = "Consumer groups are not supported yet: assign partitions and do not commit."
_NO_TRANSACTIONS = "Transactions are not supported yet: leave transactional.id unset."


def handle(node: Node, context: RequestContext, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
    code = ErrorCode.COORDINATOR_NOT_AVAILABLE
    message = _NO_GROUPS if request.key_type == GROUP else _NO_TRANSACTIONS
    if context.api_version < 4:
        return FindCoordinatorResponse(error_code=code, error_message=message, node_id=-1, host="", port=-1)
    return FindCoordinatorResponse(
        coordinators=[
            Coordinator(key=key, node_id=-1, port=-1, error_code=code, error_message=message)
            for key in request.coordinator_keys
        ]
    )
