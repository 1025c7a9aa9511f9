"""RemoveRaftVoter (key 81), versions 0: a controller leaves the metadata quorum."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING

from moldau.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest
from moldau.protocol.schema import Message
from moldau.server.dispatch.context import RequestContext

if TYPE_CHECKING:
    from moldau.server.node import Node


def handle(node: Node, context: RequestContext, request: RemoveRaftVoterRequest) -> Awaitable[Message]:
    return node.controller_channel.forward(
        context, request, lambda: node.metadata.handle(request, context.api_version)
    )
