"""JoinGroup for classic groups.

A member that is new gets an id and, from version 4 on, has to come back with it, so that a client that never
does leaves no trace. A static member that comes back takes the place it had; unless that changes which
protocol the group uses, nobody else notices. Everybody else's coming begins a rebalance, and the answer is
given when that has a new generation.

The first to come makes the group: its record is written before anything else happens, so the rest of the
decision is taken once the group is there.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

from moldau.base.errors import ErrorCode, KafkaError
from moldau.groups.classic.answers import Replies, dismiss, joined, may_join, refused_join
from moldau.groups.classic.group import ClassicGroup, ClassicState
from moldau.groups.classic.member import ClassicMember, requested_protocols
from moldau.groups.classic.rebalance import ClassicRebalances
from moldau.groups.classic.records import new_group_record
from moldau.groups.classic.static import ClassicStaticMembers
from moldau.groups.context import GroupContext, Requester
from moldau.groups.registry import GroupRegistry
from moldau.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from moldau.statemachine.coordinator_records import CoordinatorRecord, Entry
from moldau.statemachine.decision import Decision, Promise

log = logging.getLogger(__name__)

#: The version since which a new member has to come back with the id it was given.
_KNOWN_MEMBER_ID_SINCE = 4

Joining = Promise[JoinGroupResponse]


class ClassicJoins:
    def __init__(self, context: GroupContext, registry: GroupRegistry, rebalances: ClassicRebalances) -> None:
        self._context = context
        self._registry = registry
        self._rebalances = rebalances
        self._static_members = ClassicStaticMembers(context, rebalances)

    def join(
        self, requester: Requester, request: JoinGroupRequest, first: Sequence[CoordinatorRecord] = ()
    ) -> Decision[Entry, JoinGroupResponse]:
        """`first` are records that make room for a classic group where another kind of group was."""
        group = None if first else self._registry.find_as(ClassicGroup, request.group_id)
        if group is not None:
            return self._admit(requester, request, group)
        if request.member_id:
            return Decision([], refused_join(ErrorCode.UNKNOWN_MEMBER_ID, request.member_id))
        promise: Joining = Promise()
        replies: Replies = []

        def then() -> None:
            created = self._registry.get_as(ClassicGroup, request.group_id, "classic")
            decision = self._admit(requester, request, created, promise)
            replies.extend(decision.replies)
            if decision.response is not promise:
                replies.append((promise, decision.response))

        made = new_group_record(request.group_id, self._context.clock.time_ms())
        return Decision([*first, made], promise, on_appended=then, replies=replies)

    def _admit(
        self,
        requester: Requester,
        request: JoinGroupRequest,
        group: ClassicGroup,
        promise: Joining | None = None,
    ) -> Decision[Entry, JoinGroupResponse]:
        promise = promise or Promise()
        names = {each.name for each in request.protocols}
        if not may_join(group, request.member_id, self._context.settings().max_size):
            return self._turn_away(group, request.member_id)
        if not group.supports(request.protocol_type, names):
            return Decision([], refused_join(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, request.member_id))
        if request.member_id:
            return self._rejoin(requester, request, group, promise)
        if request.group_instance_id is not None:
            return self._join_static(requester, request, group, promise)
        member_id = f"{requester.client_id}-{self._context.member_uuid()}"
        if requester.api_version < _KNOWN_MEMBER_ID_SINCE:
            return self._add(requester, request, group, member_id, promise)
        group.pending_join.add(member_id)
        self._rebalances.expect(group.group_id, member_id, request.session_timeout_ms)
        return Decision([], refused_join(ErrorCode.MEMBER_ID_REQUIRED, member_id))

    def _turn_away(self, group: ClassicGroup, member_id: str) -> Decision[Entry, JoinGroupResponse]:
        replies: Replies = []
        dismiss(group, member_id, ErrorCode.GROUP_MAX_SIZE_REACHED, replies)
        group.remove(member_id)
        return Decision([], refused_join(ErrorCode.GROUP_MAX_SIZE_REACHED), replies=replies)

    def _join_static(
        self, requester: Requester, request: JoinGroupRequest, group: ClassicGroup, promise: Joining
    ) -> Decision[Entry, JoinGroupResponse]:
        instance_id = request.group_instance_id or ""
        member_id = f"{instance_id}-{self._context.member_uuid()}"
        known = group.static_members.get(instance_id)
        if known is None:
            return self._add(requester, request, group, member_id, promise)
        log.info("static member %s of group %s is back as %s", instance_id, group.group_id, member_id)
        old = group.members[known]
        return self._static_members.replace(requester, request, group, old, member_id, promise)

    def _add(
        self,
        requester: Requester,
        request: JoinGroupRequest,
        group: ClassicGroup,
        member_id: str,
        promise: Joining,
    ) -> Decision[Entry, JoinGroupResponse]:
        member = ClassicMember(
            member_id,
            request.group_instance_id,
            requester.client_id,
            requester.client_host,
            request.rebalance_timeout_ms,
            request.session_timeout_ms,
            request.protocol_type,
            requested_protocols(request),
            is_new=True,
        )
        if group.state is ClassicState.PREPARING_REBALANCE and group.previous_state is ClassicState.EMPTY:
            group.new_member_added = True
        group.add(member)
        group.joining[member_id] = promise
        self._rebalances.heard_from(group, member, self._context.settings().new_member_join_timeout_ms)
        return self._rebalance(group, f"{member_id} joins{_why(request)}", promise)

    def _rejoin(
        self, requester: Requester, request: JoinGroupRequest, group: ClassicGroup, promise: Joining
    ) -> Decision[Entry, JoinGroupResponse]:
        member_id = request.member_id
        if member_id in group.pending_join:
            if request.group_instance_id is not None:
                raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"{member_id} did not say it is static")
            return self._add(requester, request, group, member_id, promise)
        try:
            group.check_member(member_id, request.group_instance_id)
        except KafkaError as error:
            return Decision([], refused_join(error.code, member_id))
        if group.is_empty:
            return Decision([], refused_join(ErrorCode.UNKNOWN_MEMBER_ID, member_id))
        member = group.members[member_id]
        if self._is_repeated(group, member, request):
            return Decision([], joined(group, member_id))
        replies: Replies = []
        if member_id in group.joining:
            dismiss(group, member_id, ErrorCode.REBALANCE_IN_PROGRESS, replies, member_id)
        changed = replace(
            member,
            protocols=requested_protocols(request),
            rebalance_timeout_ms=request.rebalance_timeout_ms,
            session_timeout_ms=request.session_timeout_ms,
        )
        group.update(member, changed)
        group.joining[member_id] = promise
        return self._rebalance(group, f"{member_id} joins again{_why(request)}", promise, replies)

    def _is_repeated(self, group: ClassicGroup, member: ClassicMember, request: JoinGroupRequest) -> bool:
        """Whether the member asks for what it could know already: the current generation."""
        if group.state is ClassicState.PREPARING_REBALANCE:
            return False
        if group.state is ClassicState.STABLE and group.leader == member.member_id:
            return False
        return member.protocols == requested_protocols(request)

    def _rebalance(
        self, group: ClassicGroup, reason: str, promise: Joining, replies: Replies | None = None
    ) -> Decision[Entry, JoinGroupResponse]:
        replies = [] if replies is None else replies
        self._rebalances.begin_or_complete(group, reason, replies)
        return Decision([], promise, replies=replies)


def _why(request: JoinGroupRequest) -> str:
    return f"; it says: {request.reason}" if request.reason else ""
