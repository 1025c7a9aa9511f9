"""Static members of classic groups that rejoin (KIP-345): the new member id replaces the old one.

Requests with the old member id are fenced. In a stable group the replacement is stored without a rebalance,
unless the metadata of the new member selects another protocol for the group.
"""

from __future__ import annotations

from dataclasses import replace

from moldau.base.errors import ErrorCode
from moldau.groups.classic.group import ClassicGroup
from moldau.groups.classic.member import ClassicMember, requested_protocols, select_protocol
from moldau.groups.classic.rebalance import ClassicRebalances
from moldau.groups.classic.records import group_record
from moldau.groups.classic.responses import fail_pending, response_members
from moldau.groups.classic.states import ClassicState
from moldau.groups.context import GroupContext, Requester
from moldau.groups.timer_keys import heartbeat_key
from moldau.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from moldau.statemachine.coordinator_records import Entry
from moldau.statemachine.decision import Decision, Promise, Replies

#: The version from which a response can tell the leader to skip the assignment (KIP-814).
_SKIP_ASSIGNMENT_SINCE = 9


class ClassicStaticMembers:
    def __init__(self, context: GroupContext, rebalances: ClassicRebalances) -> None:
        self._context = context
        self._rebalances = rebalances

    def replace(
        self,
        requester: Requester,
        request: JoinGroupRequest,
        group: ClassicGroup,
        old: ClassicMember,
        member_id: str,
        promise: Promise[JoinGroupResponse],
    ) -> Decision[Entry, JoinGroupResponse]:
        new = replace(
            old,
            member_id=member_id,
            protocols=requested_protocols(request),
            rebalance_timeout_ms=request.rebalance_timeout_ms,
            session_timeout_ms=request.session_timeout_ms,
            is_new=False,
        )
        if group.state is ClassicState.STABLE and group.protocol == _protocol_with(group, old, new):
            return self._replace_without_rebalance(requester, group, old, new)
        replies: Replies = []

        def rebalance() -> None:
            self._fence(group, old, replies)
            group.update(old, new)
            self._rebalances.restart_session(group, new)
            group.awaiting_join[member_id] = promise
            if group.state in (ClassicState.STABLE, ClassicState.COMPLETING_REBALANCE):
                reason = f"static member {new.instance_id} rejoined as {member_id}"
                self._rebalances.prepare(group, reason, replies)
            else:
                self._rebalances.maybe_complete_join(group, replies)

        return Decision([], promise, rebalance, replies)

    def _fence(self, group: ClassicGroup, old: ClassicMember, replies: Replies) -> None:
        fail_pending(group, old.member_id, ErrorCode.FENCED_INSTANCE_ID, replies, old.member_id)
        self._context.timers.cancel(heartbeat_key(group.group_id, old.member_id))

    def _replace_without_rebalance(
        self, requester: Requester, group: ClassicGroup, old: ClassicMember, new: ClassicMember
    ) -> Decision[Entry, JoinGroupResponse]:
        members = [new if each is old else each for each in group.members.values()]
        leader = new.member_id if group.leader == old.member_id else group.leader
        assignments = {each.member_id: each.assignment for each in members}
        record = group_record(group, members, assignments, leader)
        replies: Replies = []
        former_leader = group.leader or ""
        promise: Promise[JoinGroupResponse] = Promise()

        def respond() -> None:
            self._fence(group, old, replies)
            group.update(group.members[new.member_id], new)
            self._rebalances.restart_session(group, new)
            replies.append((promise, _rejoined(requester, group, new.member_id, former_leader)))

        return Decision([record], promise, respond, replies)


def _protocol_with(group: ClassicGroup, old: ClassicMember, new: ClassicMember) -> str:
    return select_protocol([new if each is old else each for each in group.members.values()])


def _rejoined(
    requester: Requester, group: ClassicGroup, member_id: str, former_leader: str
) -> JoinGroupResponse:
    """Old clients get the former leader's id, so that a replaced leader does not assign again."""
    can_skip = requester.api_version >= _SKIP_ASSIGNMENT_SINCE
    skips = can_skip and group.leader == member_id
    return JoinGroupResponse(
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol,
        leader=(group.leader or "") if can_skip else former_leader,
        skip_assignment=skips,
        member_id=member_id,
        members=response_members(group) if skips else [],
    )
