"""Vote (key 52), versions 0 to 2: a member of the metadata quorum stands for election, or asks whether to."""

from __future__ import annotations

from collections.abc import Awaitable

from moldau.protocol.messages.vote import VoteRequest
from moldau.protocol.schema import Message
from moldau.quorum.metadata_quorum import MetadataQuorum
from moldau.server.dispatch.context import RequestContext


def handle(quorum: MetadataQuorum, context: RequestContext, request: VoteRequest) -> Awaitable[Message]:
    return quorum.handle(request, context.api_version)
