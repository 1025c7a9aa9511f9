"""ListPartitionReassignments (key 46), version 0 (KIP-455): ongoing reassignments, from the controller.

Requires DESCRIBE on CLUSTER.
"""

from __future__ import annotations

from collections.abc import Awaitable

from moldau.controller.partitions.reassignment import list_partition_reassignments
from moldau.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from moldau.security.acl.permissions import DESCRIBE_CLUSTER
from moldau.server.controller.authorization import requires
from moldau.server.controller.channel import ControllerChannel
from moldau.server.dispatch.context import RequestContext


def handle(
    controller: ControllerChannel, context: RequestContext, request: ListPartitionReassignmentsRequest
) -> Awaitable[ListPartitionReassignmentsResponse]:
    return controller.read(context, request, list_partition_reassignments, requires(DESCRIBE_CLUSTER))
