"""BrokerRegistration (key 62), versions 0 to 4: a broker tells the controller who it is."""

from __future__ import annotations

from collections.abc import Awaitable

from moldau.controller.brokers.lifecycle import register_broker
from moldau.protocol.messages.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse
from moldau.server.controller.local import LocalController
from moldau.server.dispatch.context import RequestContext


def handle(
    local_controller: LocalController, context: RequestContext, request: BrokerRegistrationRequest
) -> Awaitable[BrokerRegistrationResponse]:
    return local_controller.decide(context.api_version, request, register_broker)
