"""DeleteAcls (key 31), versions 1 to 3 (KIP-140): deletes the selected ACLs; decided by the controller.

- 1: resource pattern type (KIP-290)
- 2: flexible
- 3: user resources (KIP-373)

SECURITY_DISABLED if the controller has no authorizer.

Requires ALTER on CLUSTER.
"""

from __future__ import annotations

from collections.abc import Awaitable

from moldau.controller.security.acls import delete_acls, refuse_without_authorizer
from moldau.protocol.messages.delete_acls import DeleteAclsRequest, DeleteAclsResponse
from moldau.security.acl.permissions import ALTER_CLUSTER
from moldau.server.controller.authorization import requires
from moldau.server.controller.channel import ControllerChannel
from moldau.server.dispatch.context import RequestContext


def handle(
    controller: ControllerChannel, context: RequestContext, request: DeleteAclsRequest
) -> Awaitable[DeleteAclsResponse]:
    decision = refuse_without_authorizer if context.listener.authorizer is None else delete_acls
    return controller.decide(context, request, decision, requires(ALTER_CLUSTER))
