"""ControllerRegistration (key 70), version 0 (KIP-919): registers a controller with the active controller.

Requires CLUSTER_ACTION on CLUSTER.
"""

from __future__ import annotations

from collections.abc import Awaitable

from moldau.controller.brokers.lifecycle import register_controller
from moldau.protocol.messages.controller_registration import (
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
)
from moldau.security.acl.permissions import CLUSTER_ACTION
from moldau.server.controller.local import LocalController
from moldau.server.dispatch.context import RequestContext


def handle(
    local_controller: LocalController, context: RequestContext, request: ControllerRegistrationRequest
) -> Awaitable[ControllerRegistrationResponse]:
    context.require(CLUSTER_ACTION)
    return local_controller.decide(context.api_version, request, register_controller)
