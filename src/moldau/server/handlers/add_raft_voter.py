"""AddRaftVoter (key 80), versions 0 to 1: a controller becomes a member of the metadata quorum."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING

from moldau.protocol.messages.add_raft_voter import AddRaftVoterRequest
from moldau.protocol.schema import Message
from moldau.server.dispatch.context import RequestContext

if TYPE_CHECKING:
    from moldau.server.node import Node


def handle(node: Node, context: RequestContext, request: AddRaftVoterRequest) -> Awaitable[Message]:
    return node.controller_channel.forward(
        context, request, lambda: node.metadata.handle(request, context.api_version)
    )
