"""AssignReplicasToDirs (key 73), versions 0: a broker tells which directories its replicas lie in."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING

from moldau.controller.brokers.directories import assign_replicas_to_dirs
from moldau.protocol.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
)
from moldau.server.dispatch.context import RequestContext

if TYPE_CHECKING:
    from moldau.server.node import Node


def handle(
    node: Node, context: RequestContext, request: AssignReplicasToDirsRequest
) -> Awaitable[AssignReplicasToDirsResponse]:
    return node.local_controller.decide(context.api_version, request, assign_replicas_to_dirs)
