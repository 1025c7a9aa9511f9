"""RemoveRaftVoter (key 81), versions 0: a controller leaves the metadata quorum."""

from __future__ import annotations

from collections.abc import Awaitable

from moldau.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest
from moldau.protocol.schema import Message
from moldau.quorum.metadata_quorum import MetadataQuorum
from moldau.server.controller.channel import ControllerChannel
from moldau.server.dispatch.context import RequestContext


def handle(
    controller: ControllerChannel,
    quorum: MetadataQuorum,
    context: RequestContext,
    request: RemoveRaftVoterRequest,
) -> Awaitable[Message]:
    return controller.forward(context, request, lambda: quorum.handle(request, context.api_version))
