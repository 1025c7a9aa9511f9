"""The JoinGroup and SyncGroup responses of classic groups."""

from __future__ import annotations

from moldau.base.errors import ErrorCode
from moldau.groups.classic.group import ClassicGroup
from moldau.protocol.messages.join_group import JoinGroupResponse, JoinGroupResponseMember
from moldau.protocol.messages.sync_group import SyncGroupResponse
from moldau.statemachine.decision import Replies


def join_error(code: ErrorCode, member_id: str = "") -> JoinGroupResponse:
    return JoinGroupResponse(error_code=code, member_id=member_id, protocol_name=None)


def joined(group: ClassicGroup, member_id: str) -> JoinGroupResponse:
    """The current generation; only the leader receives the list of members."""
    return JoinGroupResponse(
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol,
        leader=group.leader or "",
        skip_assignment=False,
        member_id=member_id,
        members=response_members(group) if group.leader == member_id else [],
    )


def response_members(group: ClassicGroup) -> list[JoinGroupResponseMember]:
    return [
        JoinGroupResponseMember(
            member_id=each.member_id,
            group_instance_id=each.instance_id,
            metadata=each.metadata(group.protocol),
        )
        for each in group.members.values()
    ]


def sync_error(code: ErrorCode) -> SyncGroupResponse:
    return SyncGroupResponse(error_code=code)


def synced(group: ClassicGroup, assignment: bytes) -> SyncGroupResponse:
    return SyncGroupResponse(
        protocol_type=group.protocol_type, protocol_name=group.protocol, assignment=assignment
    )


def fail_pending(
    group: ClassicGroup, member_id: str, code: ErrorCode, replies: Replies, response_id: str = ""
) -> None:
    """Fail the pending requests of a member; `response_id` is the member id of a JoinGroup response."""
    join = group.awaiting_join.pop(member_id, None)
    if join is not None:
        replies.append((join, join_error(code, response_id)))
    sync = group.awaiting_sync.pop(member_id, None)
    if sync is not None:
        replies.append((sync, sync_error(code)))
