"""AlterPartitionReassignments (key 45), versions 0 to 1 (KIP-455): starts or cancels reassignments.

- 1: the replication factor may be required to stay the same (KIP-860)

Decided by the controller.

Requires ALTER on CLUSTER.
"""

from __future__ import annotations

from collections.abc import Awaitable

from moldau.controller.partitions.reassignment import alter_partition_reassignments
from moldau.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)
from moldau.security.acl.permissions import ALTER_CLUSTER
from moldau.server.controller.authorization import requires
from moldau.server.controller.channel import ControllerChannel
from moldau.server.dispatch.context import RequestContext


def handle(
    controller: ControllerChannel, context: RequestContext, request: AlterPartitionReassignmentsRequest
) -> Awaitable[AlterPartitionReassignmentsResponse]:
    return controller.decide(context, request, alter_partition_reassignments, requires(ALTER_CLUSTER))
