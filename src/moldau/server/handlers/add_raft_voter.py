"""AddRaftVoter (key 80), versions 0 to 1 (KIP-853): adds a controller to the voters of the metadata quorum.

- 1: the response may be sent before the change is committed (KIP-1186)

Forwarded to the active controller.

Requires ALTER on CLUSTER.
"""

from __future__ import annotations

from collections.abc import Awaitable

from moldau.protocol.messages.add_raft_voter import AddRaftVoterRequest
from moldau.protocol.schema import Message
from moldau.quorum.metadata_quorum import MetadataQuorum
from moldau.security.acl.permissions import ALTER_CLUSTER
from moldau.server.controller.channel import ControllerChannel
from moldau.server.dispatch.context import RequestContext


def handle(
    controller: ControllerChannel,
    quorum: MetadataQuorum,
    context: RequestContext,
    request: AddRaftVoterRequest,
) -> Awaitable[Message]:
    async def answer_here() -> Message:
        context.require(ALTER_CLUSTER)
        return await quorum.handle(request, context.api_version)

    return controller.forward(context, request, answer_here)
