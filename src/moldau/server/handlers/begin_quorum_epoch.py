"""BeginQuorumEpoch (key 53), versions 0 to 1: the leader of the metadata quorum makes itself known."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING

from moldau.protocol.messages.begin_quorum_epoch import BeginQuorumEpochRequest
from moldau.protocol.schema import Message
from moldau.server.dispatch.context import RequestContext

if TYPE_CHECKING:
    from moldau.server.node import Node


def handle(node: Node, context: RequestContext, request: BeginQuorumEpochRequest) -> Awaitable[Message]:
    return node.metadata.handle(request, context.api_version)
