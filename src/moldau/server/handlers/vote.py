"""Vote (key 52), versions 0 to 2: a member of the metadata quorum stands for election, or asks whether to."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING

from moldau.protocol.messages.vote import VoteRequest
from moldau.protocol.schema import Message
from moldau.server.dispatch.context import RequestContext

if TYPE_CHECKING:
    from moldau.server.node import Node


def handle(node: Node, context: RequestContext, request: VoteRequest) -> Awaitable[Message]:
    return node.metadata.handle(request, context.api_version)
