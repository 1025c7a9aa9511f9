"""FetchSnapshot (key 59), versions 0 to 1: a piece of a snapshot of the metadata."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING

from moldau.protocol.messages.fetch_snapshot import FetchSnapshotRequest
from moldau.protocol.schema import Message
from moldau.server.dispatch.context import RequestContext

if TYPE_CHECKING:
    from moldau.server.node import Node


def handle(node: Node, context: RequestContext, request: FetchSnapshotRequest) -> Awaitable[Message]:
    return node.metadata.handle(request, context.api_version)
