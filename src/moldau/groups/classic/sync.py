"""SyncGroup and Heartbeat for classic groups.

The leader's SyncGroup request carries the assignment of all members. It is stored with the group first; then
the pending SyncGroup requests are answered.
"""

from __future__ import annotations

import logging

from moldau.base.errors import ErrorCode, KafkaError
from moldau.groups.classic.group import ClassicGroup
from moldau.groups.classic.rebalance import ClassicRebalances
from moldau.groups.classic.records import group_record
from moldau.groups.classic.responses import fail_pending, sync_error, synced
from moldau.groups.classic.states import ClassicState
from moldau.groups.context import GroupContext
from moldau.groups.timer_keys import sync_key
from moldau.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from moldau.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from moldau.statemachine.coordinator_records import Entry
from moldau.statemachine.decision import Decision, Promise, Replies

logger = logging.getLogger(__name__)


class ClassicSyncs:
    def __init__(self, context: GroupContext, rebalances: ClassicRebalances) -> None:
        self._context = context
        self._rebalances = rebalances

    def sync(self, request: SyncGroupRequest, group: ClassicGroup) -> Decision[Entry, SyncGroupResponse]:
        if group.is_empty:
            return Decision([], sync_error(ErrorCode.UNKNOWN_MEMBER_ID))
        _check(request, group)
        if group.state is ClassicState.PREPARING_REBALANCE:
            return Decision([], sync_error(ErrorCode.REBALANCE_IN_PROGRESS))
        if group.state is ClassicState.COMPLETING_REBALANCE:
            promise: Promise[SyncGroupResponse] = Promise()
            if group.leader == request.member_id:
                return self._assign(request, group, promise)
            return self._await_leader(request, group, promise)
        response = synced(group, group.members[request.member_id].assignment)
        return Decision([], response, lambda: self._sync_received(group, request.member_id))

    def _await_leader(
        self, request: SyncGroupRequest, group: ClassicGroup, promise: Promise[SyncGroupResponse]
    ) -> Decision[Entry, SyncGroupResponse]:
        replies: Replies = []

        def wait() -> None:
            fail_pending(group, request.member_id, ErrorCode.REBALANCE_IN_PROGRESS, replies)
            group.awaiting_sync[request.member_id] = promise
            self._sync_received(group, request.member_id)

        return Decision([], promise, wait, replies)

    def _assign(
        self, request: SyncGroupRequest, group: ClassicGroup, promise: Promise[SyncGroupResponse]
    ) -> Decision[Entry, SyncGroupResponse]:
        assignments = {each.member_id: bytes(each.assignment) for each in request.assignments}
        unassigned = [member_id for member_id in group.members if member_id not in assignments]
        if unassigned:
            logger.warning(
                "the leader of group %s has no assignment for %s", group.group_id, ", ".join(unassigned)
            )
        record = group_record(group, group.members.values(), assignments, group.leader)
        replies: Replies = []

        def respond() -> None:
            group.awaiting_sync[request.member_id] = promise
            self._sync_received(group, request.member_id)
            awaiting, group.awaiting_sync = group.awaiting_sync, {}
            for member_id, pending in awaiting.items():
                member = group.members[member_id]
                replies.append((pending, synced(group, member.assignment)))
                self._rebalances.restart_session(group, member)

        return Decision(
            [record], promise, respond, replies, on_refused=lambda error: self._not_stored(group, error)
        )

    def _not_stored(self, group: ClassicGroup, error: KafkaError) -> None:
        """Fail the pending SyncGroup requests and start another rebalance."""
        awaiting, group.awaiting_sync = group.awaiting_sync, {}
        for member_id, pending in awaiting.items():
            pending.resolve(sync_error(error.code))
            self._rebalances.restart_session(group, group.members[member_id])
        replies: Replies = []
        self._rebalances.prepare(group, "the assignment could not be stored", replies)
        for promise, response in replies:
            promise.resolve(response)

    def _sync_received(self, group: ClassicGroup, member_id: str) -> None:
        group.pending_sync.discard(member_id)
        if not group.pending_sync:
            self._context.timers.cancel(sync_key(group.group_id))

    def heartbeat(self, request: HeartbeatRequest, group: ClassicGroup) -> Decision[Entry, HeartbeatResponse]:
        group.check_member(request.member_id, request.group_instance_id)
        if request.generation_id != group.generation:
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
        response = HeartbeatResponse()
        if group.state is ClassicState.PREPARING_REBALANCE:
            response = HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
        member = group.members[request.member_id]
        return Decision([], response, lambda: self._rebalances.restart_session(group, member))


def _check(request: SyncGroupRequest, group: ClassicGroup) -> None:
    group.check_member(request.member_id, request.group_instance_id)
    if request.generation_id != group.generation:
        raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
    if _differ(request.protocol_type, group.protocol_type) or _differ(request.protocol_name, group.protocol):
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)


def _differ(requested: str | None, current: str | None) -> bool:
    return requested is not None and current is not None and requested != current
