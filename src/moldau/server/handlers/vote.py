"""Vote (key 52), versions 0 to 2 (KIP-595): a candidate of the metadata quorum requests a vote.

- 1: the directory ids of the voter and the candidate, and the endpoint of the leader (KIP-853)
- 2: pre-vote (KIP-996)

Requires CLUSTER_ACTION on CLUSTER.
"""

from __future__ import annotations

from collections.abc import Awaitable

from moldau.protocol.messages.vote import VoteRequest
from moldau.protocol.schema import Message
from moldau.quorum.metadata_quorum import MetadataQuorum
from moldau.security.acl.permissions import CLUSTER_ACTION
from moldau.server.dispatch.context import RequestContext


def handle(quorum: MetadataQuorum, context: RequestContext, request: VoteRequest) -> Awaitable[Message]:
    context.require(CLUSTER_ACTION)
    return quorum.handle(request, context.api_version)
