"""AlterClientQuotas (key 49), versions 0 to 1 (KIP-546): changes client quotas; decided by the controller.

- 1: flexible

Every node applies the change when it has the metadata (`quotas/client_quotas.py`, `network/limits.py`).

Requires ALTER_CONFIGS on CLUSTER.
"""

from __future__ import annotations

from collections.abc import Awaitable

from moldau.controller.configs.quotas import alter_client_quotas
from moldau.protocol.messages.alter_client_quotas import AlterClientQuotasRequest, AlterClientQuotasResponse
from moldau.security.acl.permissions import ALTER_CLUSTER_CONFIGS
from moldau.server.controller.authorization import requires
from moldau.server.controller.channel import ControllerChannel
from moldau.server.dispatch.context import RequestContext


def handle(
    controller: ControllerChannel, context: RequestContext, request: AlterClientQuotasRequest
) -> Awaitable[AlterClientQuotasResponse]:
    return controller.decide(context, request, alter_client_quotas, requires(ALTER_CLUSTER_CONFIGS))
