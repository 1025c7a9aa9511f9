"""Fetch (key 1), versions 4 to 18, on controller listeners: replicates the metadata log (KIP-595).

The versions are those of `fetch.py`.

Requires CLUSTER_ACTION on CLUSTER.
"""

from __future__ import annotations

from collections.abc import Awaitable

from moldau.base.errors import ErrorCode
from moldau.protocol.messages.fetch import FetchRequest
from moldau.protocol.schema import Message
from moldau.quorum.metadata_quorum import MetadataQuorum
from moldau.security.acl.permissions import CLUSTER_ACTION
from moldau.server.dispatch.context import RequestContext
from moldau.server.handlers.fetch import refused


def handle(
    quorum: MetadataQuorum, context: RequestContext, request: FetchRequest
) -> Message | Awaitable[Message]:
    if not context.allows(CLUSTER_ACTION):
        return refused(request, context.api_version, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    return quorum.handle(request, context.api_version)
