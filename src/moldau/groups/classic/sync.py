"""SyncGroup and Heartbeat for classic groups: members ask for their assignment, and say that they live.

The assignment comes with the leader's request. It is stored with the group, and only then do the members
that wait get theirs.
"""

from __future__ import annotations

import logging

from moldau.base.errors import ErrorCode, KafkaError
from moldau.groups.classic.answers import Replies, assigned, dismiss, refused_sync
from moldau.groups.classic.group import ClassicGroup, ClassicState
from moldau.groups.classic.rebalance import ClassicRebalances
from moldau.groups.classic.records import group_record
from moldau.groups.classic.timers import sync_key
from moldau.groups.context import GroupContext
from moldau.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from moldau.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from moldau.statemachine.coordinator_records import Entry
from moldau.statemachine.decision import Decision, Promise

log = logging.getLogger(__name__)


class ClassicSyncs:
    def __init__(self, context: GroupContext, rebalances: ClassicRebalances) -> None:
        self._context = context
        self._rebalances = rebalances

    def sync(self, request: SyncGroupRequest, group: ClassicGroup) -> Decision[Entry, SyncGroupResponse]:
        if group.is_empty:
            return Decision([], refused_sync(ErrorCode.UNKNOWN_MEMBER_ID))
        self._check(request, group)
        if group.state is ClassicState.PREPARING_REBALANCE:
            return Decision([], refused_sync(ErrorCode.REBALANCE_IN_PROGRESS))
        if group.state is ClassicState.COMPLETING_REBALANCE:
            return self._wait(request, group)
        self._asked(group, request.member_id)
        return Decision([], assigned(group, group.members[request.member_id].assignment))

    def _check(self, request: SyncGroupRequest, group: ClassicGroup) -> None:
        group.check_member(request.member_id, request.group_instance_id)
        if request.generation_id != group.generation:
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
        if _differ(request.protocol_type, group.protocol_type) or _differ(
            request.protocol_name, group.protocol
        ):
            raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)

    def _wait(self, request: SyncGroupRequest, group: ClassicGroup) -> Decision[Entry, SyncGroupResponse]:
        """The leader's request ends everybody's waiting."""
        promise: Promise[SyncGroupResponse] = Promise()
        if group.leader == request.member_id:
            return self._assign(request, group, promise)
        replies: Replies = []
        dismiss(group, request.member_id, ErrorCode.REBALANCE_IN_PROGRESS, replies)
        group.syncing[request.member_id] = promise
        self._asked(group, request.member_id)
        return Decision([], promise, replies=replies)

    def _assign(
        self, request: SyncGroupRequest, group: ClassicGroup, promise: Promise[SyncGroupResponse]
    ) -> Decision[Entry, SyncGroupResponse]:
        assignments = {each.member_id: bytes(each.assignment) for each in request.assignments}
        without = [member_id for member_id in group.members if member_id not in assignments]
        if without:
            log.warning("the leader of group %s assigns nothing to %s", group.group_id, ", ".join(without))
        record = group_record(group, group.members.values(), assignments, group.leader)
        replies: Replies = []

        def then() -> None:
            group.syncing[request.member_id] = promise
            self._asked(group, request.member_id)
            syncing, group.syncing = group.syncing, {}
            for member_id, waiting in syncing.items():
                member = group.members[member_id]
                replies.append((waiting, assigned(group, member.assignment)))
                self._rebalances.heard_from(group, member)

        return Decision(
            [record],
            promise,
            on_appended=then,
            replies=replies,
            on_refused=lambda error: self._not_stored(group, error),
        )

    def _not_stored(self, group: ClassicGroup, error: KafkaError) -> None:
        """Nobody gets an assignment: all who wait hear why, and the group assigns anew."""
        syncing, group.syncing = group.syncing, {}
        for member_id, waiting in syncing.items():
            waiting.resolve(refused_sync(error.code))
            self._rebalances.heard_from(group, group.members[member_id])
        replies: Replies = []
        self._rebalances.begin(group, "the assignment could not be stored", replies)
        for promise, answer in replies:
            promise.resolve(answer)

    def _asked(self, group: ClassicGroup, member_id: str) -> None:
        group.pending_sync.discard(member_id)
        if not group.pending_sync:
            self._context.timers.cancel(sync_key(group.group_id))

    def heartbeat(self, request: HeartbeatRequest, group: ClassicGroup) -> Decision[Entry, HeartbeatResponse]:
        group.check_member(request.member_id, request.group_instance_id)
        if request.generation_id != group.generation:
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
        self._rebalances.heard_from(group, group.members[request.member_id])
        if group.state is ClassicState.PREPARING_REBALANCE:
            return Decision([], HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))
        return Decision([], HeartbeatResponse())


def _differ(said: str | None, known: str | None) -> bool:
    return said is not None and known is not None and said != known
