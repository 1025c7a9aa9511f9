"""UpdateRaftVoter (key 82), version 0 (KIP-853): a voter reports its endpoints and `kraft.version`.

Requires CLUSTER_ACTION on CLUSTER.
"""

from __future__ import annotations

from collections.abc import Awaitable

from moldau.protocol.messages.update_raft_voter import UpdateRaftVoterRequest
from moldau.protocol.schema import Message
from moldau.quorum.metadata_quorum import MetadataQuorum
from moldau.security.acl.permissions import CLUSTER_ACTION
from moldau.server.dispatch.context import RequestContext


def handle(
    quorum: MetadataQuorum, context: RequestContext, request: UpdateRaftVoterRequest
) -> Awaitable[Message]:
    context.require(CLUSTER_ACTION)
    return quorum.handle(request, context.api_version)
