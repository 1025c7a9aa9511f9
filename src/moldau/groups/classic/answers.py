"""The answers that members of a classic group get, and what is put off until they may be given."""

from __future__ import annotations

from typing import Any

from moldau.base.errors import ErrorCode
from moldau.groups.classic.group import ClassicGroup, ClassicState
from moldau.protocol.messages.join_group import JoinGroupResponse, JoinGroupResponseMember
from moldau.protocol.messages.sync_group import SyncGroupResponse
from moldau.statemachine.decision import Promise

#: Promises and what each is kept with. A decision's own list, which may still grow in its `then`.
Replies = list[tuple[Promise[Any], Any]]


def refused_join(code: ErrorCode, member_id: str = "") -> JoinGroupResponse:
    return JoinGroupResponse(error_code=code, member_id=member_id, protocol_name=None)


def joined(group: ClassicGroup, member_id: str, *, skip_assignment: bool = False) -> JoinGroupResponse:
    """The current generation as a member is told about it: only the leader hears who else is there."""
    members = group_members(group) if group.leader == member_id else []
    return JoinGroupResponse(
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol,
        leader=group.leader or "",
        skip_assignment=skip_assignment,
        member_id=member_id,
        members=members,
    )


def group_members(group: ClassicGroup) -> list[JoinGroupResponseMember]:
    return [
        JoinGroupResponseMember(
            member_id=each.member_id,
            group_instance_id=each.instance_id,
            metadata=each.metadata(group.protocol),
        )
        for each in group.members.values()
    ]


def refused_sync(code: ErrorCode) -> SyncGroupResponse:
    return SyncGroupResponse(error_code=code)


def assigned(group: ClassicGroup, assignment: bytes) -> SyncGroupResponse:
    return SyncGroupResponse(
        protocol_type=group.protocol_type, protocol_name=group.protocol, assignment=assignment
    )


def dismiss(group: ClassicGroup, member_id: str, code: ErrorCode, replies: Replies, told: str = "") -> None:
    """Whatever the member waits for, it gets this error instead."""
    join = group.joining.pop(member_id, None)
    if join is not None:
        replies.append((join, refused_join(code, told)))
    sync = group.syncing.pop(member_id, None)
    if sync is not None:
        replies.append((sync, refused_sync(code)))


def may_join(group: ClassicGroup, member_id: str, max_size: int) -> bool:
    """Whether `group.max.size` leaves room; who is in already stays."""
    if group.state in (ClassicState.EMPTY, ClassicState.DEAD):
        return True
    if group.state is ClassicState.PREPARING_REBALANCE:
        return member_id in group.joining or len(group.joining) < max_size
    return member_id in group.members or len(group.members) < max_size
