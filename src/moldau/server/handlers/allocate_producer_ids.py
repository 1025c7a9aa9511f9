"""AllocateProducerIds (key 67), version 0 (KIP-730): allocates a block of producer ids to a broker.

Requires CLUSTER_ACTION on CLUSTER.
"""

from __future__ import annotations

from collections.abc import Awaitable

from moldau.controller.producer_ids import allocate_producer_ids
from moldau.protocol.messages.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)
from moldau.security.acl.permissions import CLUSTER_ACTION
from moldau.server.controller.local import LocalController
from moldau.server.dispatch.context import RequestContext


def handle(
    local_controller: LocalController, context: RequestContext, request: AllocateProducerIdsRequest
) -> Awaitable[AllocateProducerIdsResponse]:
    context.require(CLUSTER_ACTION)
    return local_controller.decide(context.api_version, request, allocate_producer_ids)
