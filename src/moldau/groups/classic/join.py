"""JoinGroup for classic groups.

A new dynamic member gets a member id and, from version 4, must join again with it (KIP-394), so that a client
that never does adds no member. A static member that rejoins replaces its former self (KIP-345). Any
other join starts a rebalance, and its response waits for the next generation.

The first member creates the group: the group's record is written first, and the member is admitted when the
record is appended.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

from moldau.base.errors import ErrorCode, KafkaError
from moldau.groups.classic.group import ClassicGroup
from moldau.groups.classic.member import ClassicMember, requested_protocols
from moldau.groups.classic.rebalance import ClassicRebalances
from moldau.groups.classic.records import new_group_record
from moldau.groups.classic.responses import fail_pending, join_error, joined
from moldau.groups.classic.states import ClassicState
from moldau.groups.classic.static_members import ClassicStaticMembers
from moldau.groups.context import GroupContext, Requester
from moldau.groups.registry import GroupRegistry
from moldau.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from moldau.statemachine.coordinator_records import CoordinatorRecord, Entry
from moldau.statemachine.decision import Decision, Promise, Replies

logger = logging.getLogger(__name__)

#: The version from which a new member must join again with the id it was given (KIP-394).
_MEMBER_ID_REQUIRED_SINCE = 4

JoinPromise = Promise[JoinGroupResponse]


class ClassicJoins:
    def __init__(self, context: GroupContext, registry: GroupRegistry, rebalances: ClassicRebalances) -> None:
        self._context = context
        self._registry = registry
        self._rebalances = rebalances
        self._static_members = ClassicStaticMembers(context, rebalances)

    def join(
        self, requester: Requester, request: JoinGroupRequest, tombstones: Sequence[CoordinatorRecord] = ()
    ) -> Decision[Entry, JoinGroupResponse]:
        """`tombstones` remove an empty group of another type with the same id."""
        group = None if tombstones else self._registry.find_as(ClassicGroup, request.group_id)
        if group is not None:
            return self._admit(requester, request, group, Promise())
        if request.member_id:
            return Decision([], join_error(ErrorCode.UNKNOWN_MEMBER_ID, request.member_id))
        promise: JoinPromise = Promise()
        replies: Replies = []

        def admit_first() -> None:
            created = self._registry.get_as(ClassicGroup, request.group_id, "classic")
            # In a new group no admission writes records.
            admission = self._admit(requester, request, created, promise)
            if admission.on_appended is not None:
                admission.on_appended()
            replies.extend(admission.replies)
            if admission.response is not promise:
                replies.append((promise, admission.response))

        record = new_group_record(request.group_id, self._context.clock.time_ms())
        return Decision([*tombstones, record], promise, admit_first, replies)

    def _admit(
        self, requester: Requester, request: JoinGroupRequest, group: ClassicGroup, promise: JoinPromise
    ) -> Decision[Entry, JoinGroupResponse]:
        names = {each.name for each in request.protocols}
        if not group.has_room_for(request.member_id, self._context.settings().max_size):
            return self._refuse_size(group, request.member_id)
        if not group.supports(request.protocol_type, names):
            return Decision([], join_error(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, request.member_id))
        if request.member_id:
            return self._rejoin(requester, request, group, promise)
        if request.group_instance_id is not None:
            return self._join_static(requester, request, group, promise)
        member_id = f"{requester.client_id}-{self._context.member_uuid()}"
        if requester.api_version < _MEMBER_ID_REQUIRED_SINCE:
            return self._add(requester, request, group, member_id, promise)
        return self._require_member_id(request, group, member_id)

    def _refuse_size(self, group: ClassicGroup, member_id: str) -> Decision[Entry, JoinGroupResponse]:
        replies: Replies = []

        def remove() -> None:
            fail_pending(group, member_id, ErrorCode.GROUP_MAX_SIZE_REACHED, replies)
            group.remove(member_id)

        return Decision([], join_error(ErrorCode.GROUP_MAX_SIZE_REACHED), remove, replies)

    def _require_member_id(
        self, request: JoinGroupRequest, group: ClassicGroup, member_id: str
    ) -> Decision[Entry, JoinGroupResponse]:
        def expect() -> None:
            group.pending_join.add(member_id)
            self._rebalances.schedule_session(group.group_id, member_id, request.session_timeout_ms)

        return Decision([], join_error(ErrorCode.MEMBER_ID_REQUIRED, member_id), expect)

    def _join_static(
        self, requester: Requester, request: JoinGroupRequest, group: ClassicGroup, promise: JoinPromise
    ) -> Decision[Entry, JoinGroupResponse]:
        instance_id = request.group_instance_id or ""
        member_id = f"{instance_id}-{self._context.member_uuid()}"
        known = group.static_members.get(instance_id)
        if known is None:
            return self._add(requester, request, group, member_id, promise)
        logger.info("static member %s of group %s rejoins as %s", instance_id, group.group_id, member_id)
        old = group.members[known]
        return self._static_members.replace(requester, request, group, old, member_id, promise)

    def _add(
        self,
        requester: Requester,
        request: JoinGroupRequest,
        group: ClassicGroup,
        member_id: str,
        promise: JoinPromise,
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
        replies: Replies = []

        def add() -> None:
            if group.state is ClassicState.PREPARING_REBALANCE and group.previous_state is ClassicState.EMPTY:
                group.new_member_added = True
            group.add(member)
            group.awaiting_join[member_id] = promise
            self._rebalances.restart_session(
                group, member, self._context.settings().new_member_join_timeout_ms
            )
            self._rebalances.prepare_or_complete_join(group, f"{member_id} joins{_reason(request)}", replies)

        return Decision([], promise, add, replies)

    def _rejoin(
        self, requester: Requester, request: JoinGroupRequest, group: ClassicGroup, promise: JoinPromise
    ) -> Decision[Entry, JoinGroupResponse]:
        member_id = request.member_id
        if member_id in group.pending_join:
            if request.group_instance_id is not None:
                raise KafkaError(
                    ErrorCode.UNKNOWN_SERVER_ERROR,
                    f"The pending member {member_id} joins with a group instance id.",
                )
            return self._add(requester, request, group, member_id, promise)
        try:
            group.check_member(member_id, request.group_instance_id)
        except KafkaError as error:
            return Decision([], join_error(error.code, member_id))
        if group.is_empty:
            return Decision([], join_error(ErrorCode.UNKNOWN_MEMBER_ID, member_id))
        member = group.members[member_id]
        if _is_repeated(group, member, request):
            return Decision([], joined(group, member_id))
        changed = replace(
            member,
            protocols=requested_protocols(request),
            rebalance_timeout_ms=request.rebalance_timeout_ms,
            session_timeout_ms=request.session_timeout_ms,
        )
        replies: Replies = []

        def update() -> None:
            if member_id in group.awaiting_join:
                fail_pending(group, member_id, ErrorCode.REBALANCE_IN_PROGRESS, replies, member_id)
            group.update(member, changed)
            group.awaiting_join[member_id] = promise
            reason = f"{member_id} rejoins{_reason(request)}"
            self._rebalances.prepare_or_complete_join(group, reason, replies)

        return Decision([], promise, update, replies)


def _is_repeated(group: ClassicGroup, member: ClassicMember, request: JoinGroupRequest) -> bool:
    """Return whether a join can be answered with the current generation: nothing has changed."""
    if group.state is ClassicState.PREPARING_REBALANCE:
        return False
    if group.state is ClassicState.STABLE and group.leader == member.member_id:
        return False
    return member.protocols == requested_protocols(request)


def _reason(request: JoinGroupRequest) -> str:
    return f" (client reason: {request.reason})" if request.reason else ""
