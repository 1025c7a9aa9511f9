"""AlterPartition (key 56), versions 2 to 3 (KIP-497): a leader changes the ISR of its partitions.

- 2: topic ids; INELIGIBLE_REPLICA (KIP-841)
- 3: broker epochs of the ISR (KIP-903)

Requires CLUSTER_ACTION on CLUSTER.
"""

from __future__ import annotations

from collections.abc import Awaitable

from moldau.controller.partitions.isr import alter_partition
from moldau.protocol.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from moldau.security.acl.permissions import CLUSTER_ACTION
from moldau.server.controller.local import LocalController
from moldau.server.dispatch.context import RequestContext


def handle(
    local_controller: LocalController, context: RequestContext, request: AlterPartitionRequest
) -> Awaitable[AlterPartitionResponse]:
    context.require(CLUSTER_ACTION)
    return local_controller.decide(context.api_version, request, alter_partition)
