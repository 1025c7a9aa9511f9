"""ControllerRegistration (key 70), version 0 (KIP-919): registers a controller with the active controller."""

from __future__ import annotations

from collections.abc import Awaitable

from moldau.controller.brokers.lifecycle import register_controller
from moldau.protocol.messages.controller_registration import (
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
)
from moldau.server.controller.local import LocalController
from moldau.server.dispatch.context import RequestContext


def handle(
    local_controller: LocalController, context: RequestContext, request: ControllerRegistrationRequest
) -> Awaitable[ControllerRegistrationResponse]:
    return local_controller.decide(context.api_version, request, register_controller)
