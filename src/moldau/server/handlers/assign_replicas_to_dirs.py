"""AssignReplicasToDirs (key 73), version 0 (KIP-858): a broker reports the directories of its replicas.

Requires CLUSTER_ACTION on CLUSTER.
"""

from __future__ import annotations

from collections.abc import Awaitable

from moldau.controller.brokers.directories import assign_replicas_to_dirs
from moldau.protocol.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
)
from moldau.security.acl.permissions import CLUSTER_ACTION
from moldau.server.controller.local import LocalController
from moldau.server.dispatch.context import RequestContext


def handle(
    local_controller: LocalController, context: RequestContext, request: AssignReplicasToDirsRequest
) -> Awaitable[AssignReplicasToDirsResponse]:
    context.require(CLUSTER_ACTION)
    return local_controller.decide(context.api_version, request, assign_replicas_to_dirs)
