"""A static member that comes back: it takes the place it had in its classic group under a new member id.

Whoever still uses the old member id is fenced. In a group at rest the exchange is stored and nobody else
hears of it, unless what the member says now changes which protocol the group uses.
"""

from __future__ import annotations

from dataclasses import replace

from moldau.base.errors import ErrorCode
from moldau.groups.classic.answers import Replies, dismiss, group_members
from moldau.groups.classic.group import ClassicGroup, ClassicState
from moldau.groups.classic.member import ClassicMember, requested_protocols, select_protocol
from moldau.groups.classic.rebalance import ClassicRebalances
from moldau.groups.classic.records import group_record
from moldau.groups.classic.timers import heartbeat_key
from moldau.groups.context import GroupContext, Requester
from moldau.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from moldau.statemachine.coordinator_records import Entry
from moldau.statemachine.decision import Decision, Promise

#: The version since which a leader can be told that it need not assign.
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
        if group.state is ClassicState.STABLE and group.protocol == self._protocol_with(group, old, new):
            return self._exchange(requester, group, old, new)
        replies: Replies = []
        dismiss(group, old.member_id, ErrorCode.FENCED_INSTANCE_ID, replies, old.member_id)
        self._context.timers.cancel(heartbeat_key(group.group_id, old.member_id))
        group.update(old, new)
        self._rebalances.heard_from(group, new)
        group.joining[member_id] = promise
        reason = f"static member {new.instance_id} is back as {member_id}"
        if group.state in (ClassicState.STABLE, ClassicState.COMPLETING_REBALANCE):
            self._rebalances.begin(group, reason, replies)
        else:
            self._rebalances.complete_if_all_joined(group, replies)
        return Decision([], promise, replies=replies)

    def _protocol_with(self, group: ClassicGroup, old: ClassicMember, new: ClassicMember) -> str:
        return select_protocol([new if each is old else each for each in group.members.values()])

    def _exchange(
        self, requester: Requester, group: ClassicGroup, old: ClassicMember, new: ClassicMember
    ) -> Decision[Entry, JoinGroupResponse]:
        """The group stays at rest."""
        members = [new if each is old else each for each in group.members.values()]
        leader = new.member_id if group.leader == old.member_id else group.leader
        assignments = {each.member_id: each.assignment for each in members}
        record = group_record(group, members, assignments, leader)
        replies: Replies = []
        former_leader = group.leader or ""
        promise: Promise[JoinGroupResponse] = Promise()

        def then() -> None:
            dismiss(group, old.member_id, ErrorCode.FENCED_INSTANCE_ID, replies, old.member_id)
            self._context.timers.cancel(heartbeat_key(group.group_id, old.member_id))
            group.update(group.members[new.member_id], new)
            self._rebalances.heard_from(group, new)
            replies.append((promise, self._unchanged(requester, group, new.member_id, former_leader)))

        return Decision([record], promise, on_appended=then, replies=replies)

    def _unchanged(
        self, requester: Requester, group: ClassicGroup, member_id: str, former_leader: str
    ) -> JoinGroupResponse:
        """Old clients are told of the leader they knew, so that a leader does not assign again."""
        skips = requester.api_version >= _SKIP_ASSIGNMENT_SINCE
        leads = skips and group.leader == member_id
        return JoinGroupResponse(
            generation_id=group.generation,
            protocol_type=group.protocol_type,
            protocol_name=group.protocol,
            leader=(group.leader or "") if skips else former_leader,
            skip_assignment=leads,
            member_id=member_id,
            members=group_members(group) if leads else [],
        )
