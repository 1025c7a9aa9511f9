"""ListPartitionReassignments (key 46), version 0 (KIP-455): ongoing reassignments, from the controller."""

from __future__ import annotations

from collections.abc import Awaitable

from moldau.controller.partitions.reassignment import list_partition_reassignments
from moldau.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from moldau.server.controller.channel import ControllerChannel
from moldau.server.dispatch.context import RequestContext


def handle(
    controller: ControllerChannel, context: RequestContext, request: ListPartitionReassignmentsRequest
) -> Awaitable[ListPartitionReassignmentsResponse]:
    return controller.read(context, request, list_partition_reassignments)
