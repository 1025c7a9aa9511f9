"""UnregisterBroker (key 64), version 0: removes the registration of a broker; decided by the controller.

Requires ALTER on CLUSTER.
"""

from __future__ import annotations

from collections.abc import Awaitable

from moldau.controller.brokers.lifecycle import unregister_broker
from moldau.protocol.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
from moldau.security.acl.permissions import ALTER_CLUSTER
from moldau.server.controller.authorization import requires
from moldau.server.controller.channel import ControllerChannel
from moldau.server.dispatch.context import RequestContext


def handle(
    controller: ControllerChannel, context: RequestContext, request: UnregisterBrokerRequest
) -> Awaitable[UnregisterBrokerResponse]:
    return controller.decide(context, request, unregister_broker, requires(ALTER_CLUSTER))
