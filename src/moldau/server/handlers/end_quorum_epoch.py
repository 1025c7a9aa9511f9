"""EndQuorumEpoch (key 54), versions 0 to 1 (KIP-595): the leader of the metadata quorum resigns.

- 1: flexible; the directory ids of the preferred candidates and the endpoints of the leader (KIP-853)

Requires CLUSTER_ACTION on CLUSTER.
"""

from __future__ import annotations

from collections.abc import Awaitable

from moldau.protocol.messages.end_quorum_epoch import EndQuorumEpochRequest
from moldau.protocol.schema import Message
from moldau.quorum.metadata_quorum import MetadataQuorum
from moldau.security.acl.permissions import CLUSTER_ACTION
from moldau.server.dispatch.context import RequestContext


def handle(
    quorum: MetadataQuorum, context: RequestContext, request: EndQuorumEpochRequest
) -> Awaitable[Message]:
    context.require(CLUSTER_ACTION)
    return quorum.handle(request, context.api_version)
