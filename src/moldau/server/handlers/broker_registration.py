"""BrokerRegistration (key 62), versions 0 to 4 (KIP-631): registers a broker with the controller.

- 1: brokers migrating from ZooKeeper (KIP-866), which are refused
- 2: log directories (KIP-858)
- 3: previous broker epoch, which proves a clean shutdown (KIP-966)
- 4: supported features may have a minimum level of 0

Requires CLUSTER_ACTION on CLUSTER.
"""

from __future__ import annotations

from collections.abc import Awaitable

from moldau.controller.brokers.lifecycle import register_broker
from moldau.protocol.messages.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse
from moldau.security.acl.permissions import CLUSTER_ACTION
from moldau.server.controller.local import LocalController
from moldau.server.dispatch.context import RequestContext


def handle(
    local_controller: LocalController, context: RequestContext, request: BrokerRegistrationRequest
) -> Awaitable[BrokerRegistrationResponse]:
    context.require(CLUSTER_ACTION)
    return local_controller.decide(context.api_version, request, register_broker)
