"""BrokerHeartbeat (key 63), versions 0 to 2: a broker is alive, and how far it has followed the metadata."""

from __future__ import annotations

from collections.abc import Awaitable

from moldau.controller.brokers.lifecycle import broker_heartbeat
from moldau.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from moldau.server.controller.failure_detector import BrokerFailureDetector
from moldau.server.controller.local import LocalController
from moldau.server.dispatch.context import RequestContext


def handle(
    local_controller: LocalController,
    failure_detector: BrokerFailureDetector,
    context: RequestContext,
    request: BrokerHeartbeatRequest,
) -> Awaitable[BrokerHeartbeatResponse]:
    failure_detector.heartbeat_received(context.connection, request.broker_id)
    return local_controller.decide(context.api_version, request, broker_heartbeat)
