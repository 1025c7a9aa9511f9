"""FetchSnapshot (key 59), versions 0 to 1 (KIP-630): a part of a snapshot of the metadata.

- 1: the directory id of the replica and the endpoint of the leader (KIP-853)

Requires CLUSTER_ACTION on CLUSTER.
"""

from __future__ import annotations

from collections.abc import Awaitable

from moldau.protocol.messages.fetch_snapshot import FetchSnapshotRequest
from moldau.protocol.schema import Message
from moldau.quorum.metadata_quorum import MetadataQuorum
from moldau.security.acl.permissions import CLUSTER_ACTION
from moldau.server.dispatch.context import RequestContext


def handle(
    quorum: MetadataQuorum, context: RequestContext, request: FetchSnapshotRequest
) -> Awaitable[Message]:
    context.require(CLUSTER_ACTION)
    return quorum.handle(request, context.api_version)
