"""Administrative requests of everyday APIs: those that act on the groups or transactions of others.

- WriteTxnMarkers from a client (`kafka-transactions --abort`). Nodes send it for every transaction.
- OffsetCommit without member and generation: offsets that are set (`kafka-consumer-groups --reset-offsets`).
  Consumers that are no members commit in the same way.
- LeaveGroup for a member that is not the sender's (`removeMembersFromConsumerGroup`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from moldau.protocol.api_keys import ApiKey
from moldau.server.dispatch.context import RequestContext

#: The client ids of nodes, which need the permission for these requests in any case.
_NODE: Final = re.compile(r"broker-\d+-.+")


def writes_markers_of_others(context: RequestContext, request: Any) -> bool:
    return _NODE.fullmatch(context.client_id or "") is None


def sets_offsets(context: RequestContext, request: Any) -> bool:
    return request.generation_id_or_member_epoch < 0 and not request.member_id


def removes_members(context: RequestContext, request: Any) -> bool:
    """A coordinator begins a member's id with the client id of the request that joined."""
    removed = [each.member_id for each in request.members] or [request.member_id]
    own = f"{context.client_id or ''}-"
    return not all(member_id.startswith(own) for member_id in removed)


BY_ADMINISTRATOR: Final[Mapping[int, Callable[[RequestContext, Any], bool]]] = {
    ApiKey.WRITE_TXN_MARKERS: writes_markers_of_others,
    ApiKey.OFFSET_COMMIT: sets_offsets,
    ApiKey.LEAVE_GROUP: removes_members,
}
