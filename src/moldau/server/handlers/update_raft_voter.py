"""UpdateRaftVoter (key 82), versions 0: a voter tells the leader where it listens now."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING

from moldau.protocol.messages.update_raft_voter import UpdateRaftVoterRequest
from moldau.protocol.schema import Message
from moldau.server.dispatch.context import RequestContext

if TYPE_CHECKING:
    from moldau.server.node import Node


def handle(node: Node, context: RequestContext, request: UpdateRaftVoterRequest) -> Awaitable[Message]:
    return node.metadata.handle(request, context.api_version)
