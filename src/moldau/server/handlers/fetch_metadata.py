"""Fetch (key 1), versions 4 to 18, on controller listeners: replicates the metadata log (KIP-595).

The versions are those of `fetch.py`.
"""

from __future__ import annotations

from collections.abc import Awaitable

from moldau.protocol.messages.fetch import FetchRequest
from moldau.protocol.schema import Message
from moldau.quorum.metadata_quorum import MetadataQuorum
from moldau.server.dispatch.context import RequestContext


def handle(quorum: MetadataQuorum, context: RequestContext, request: FetchRequest) -> Awaitable[Message]:
    return quorum.handle(request, context.api_version)
