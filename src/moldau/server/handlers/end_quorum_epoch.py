"""EndQuorumEpoch (key 54), versions 0 to 1: the leader of the metadata quorum resigns."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING

from moldau.protocol.messages.end_quorum_epoch import EndQuorumEpochRequest
from moldau.protocol.schema import Message
from moldau.server.dispatch.context import RequestContext

if TYPE_CHECKING:
    from moldau.server.node import Node


def handle(node: Node, context: RequestContext, request: EndQuorumEpochRequest) -> Awaitable[Message]:
    return node.metadata.handle(request, context.api_version)
