"""BeginQuorumEpoch (key 53), versions 0 to 1 (KIP-595): a new leader of the metadata quorum announces itself.

- 1: flexible; the directory id of the voter and the endpoints of the leader (KIP-853)

Requires CLUSTER_ACTION on CLUSTER.
"""

from __future__ import annotations

from collections.abc import Awaitable

from moldau.protocol.messages.begin_quorum_epoch import BeginQuorumEpochRequest
from moldau.protocol.schema import Message
from moldau.quorum.metadata_quorum import MetadataQuorum
from moldau.security.acl.permissions import CLUSTER_ACTION
from moldau.server.dispatch.context import RequestContext


def handle(
    quorum: MetadataQuorum, context: RequestContext, request: BeginQuorumEpochRequest
) -> Awaitable[Message]:
    context.require(CLUSTER_ACTION)
    return quorum.handle(request, context.api_version)
