"""BrokerHeartbeat (key 63), versions 0 to 2 (KIP-631): keeps the session of a broker alive.

- 1: failed log directories (KIP-858)
- 2: cordoned log directories (KIP-1066)

Requires CLUSTER_ACTION on CLUSTER.
"""

from __future__ import annotations

from collections.abc import Awaitable

from moldau.controller.brokers.lifecycle import broker_heartbeat
from moldau.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from moldau.security.acl.permissions import CLUSTER_ACTION
from moldau.server.controller.failure_detector import BrokerFailureDetector
from moldau.server.controller.local import LocalController
from moldau.server.dispatch.context import RequestContext


def handle(
    local_controller: LocalController,
    failure_detector: BrokerFailureDetector,
    context: RequestContext,
    request: BrokerHeartbeatRequest,
) -> Awaitable[BrokerHeartbeatResponse]:
    context.require(CLUSTER_ACTION)
    failure_detector.heartbeat_received(context.connection, request.broker_id)
    return local_controller.decide(context.api_version, request, broker_heartbeat)
