"""Fetch (key 1), versions 4 to 18, on the controller listener: the metadata log, for those who follow it."""

from __future__ import annotations

from collections.abc import Awaitable

from moldau.protocol.messages.fetch import FetchRequest
from moldau.protocol.schema import Message
from moldau.quorum.metadata_quorum import MetadataQuorum
from moldau.server.dispatch.context import RequestContext


def handle(quorum: MetadataQuorum, context: RequestContext, request: FetchRequest) -> Awaitable[Message]:
    return quorum.handle(request, context.api_version)
