"""BrokerHeartbeat (key 63), versions 0 to 2: a broker is alive, and how far it has followed the metadata."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING

from moldau.controller.brokers.lifecycle import broker_heartbeat
from moldau.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from moldau.server.dispatch.context import RequestContext

if TYPE_CHECKING:
    from moldau.server.node import Node


def handle(
    node: Node, context: RequestContext, request: BrokerHeartbeatRequest
) -> Awaitable[BrokerHeartbeatResponse]:
    node.broker_watch.heard(context.connection, request.broker_id)
    return node.local_controller.decide(context.api_version, request, broker_heartbeat)
