"""RemoveRaftVoter (key 81), version 0 (KIP-853): removes a controller from the voters of the quorum.

Forwarded to the active controller.

Requires ALTER on CLUSTER.
"""

from __future__ import annotations

from collections.abc import Awaitable

from moldau.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest
from moldau.protocol.schema import Message
from moldau.quorum.metadata_quorum import MetadataQuorum
from moldau.security.acl.permissions import ALTER_CLUSTER
from moldau.server.controller.channel import ControllerChannel
from moldau.server.dispatch.context import RequestContext


def handle(
    controller: ControllerChannel,
    quorum: MetadataQuorum,
    context: RequestContext,
    request: RemoveRaftVoterRequest,
) -> Awaitable[Message]:
    async def answer_here() -> Message:
        context.require(ALTER_CLUSTER)
        return await quorum.handle(request, context.api_version)

    return controller.forward(context, request, answer_here)
