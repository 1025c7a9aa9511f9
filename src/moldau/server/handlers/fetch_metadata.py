"""Fetch (key 1), versions 4 to 18, on the controller listener: the metadata log, for those who follow it."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING

from moldau.protocol.messages.fetch import FetchRequest
from moldau.protocol.schema import Message
from moldau.server.dispatch.context import RequestContext

if TYPE_CHECKING:
    from moldau.server.node import Node


def handle(node: Node, context: RequestContext, request: FetchRequest) -> Awaitable[Message]:
    return node.metadata.handle(request, context.api_version)
