"""The rebalance of a classic group, from its cause to the next generation.

PreparingRebalance: members must rejoin. The phase ends when all have, or after the longest rebalance timeout.
A group that was empty waits `group.initial.rebalance.delay.ms` instead, again and again while members keep
joining. CompletingRebalance: every member has the new generation, the leader assigns, the others wait.
Members that do not send SyncGroup within the rebalance timeout are removed.

A rebalance itself is not stored; only the group that has lost its last member is. As everywhere, soft state
changes once the decision is appended. The methods that change it receive `replies`, the list in which they
collect the responses to pending requests.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import Any, TypeVar

from moldau.base.errors import ErrorCode
from moldau.groups.classic.group import ClassicGroup
from moldau.groups.classic.member import ClassicMember
from moldau.groups.classic.records import empty_group_record
from moldau.groups.classic.responses import fail_pending, joined, sync_error
from moldau.groups.classic.states import CLASSIC_TRANSITIONS, ClassicEvent, ClassicState
from moldau.groups.context import GroupContext
from moldau.groups.registry import GroupRegistry
from moldau.groups.timer_keys import heartbeat_key, join_key, sync_key
from moldau.statemachine.coordinator_records import Entry
from moldau.statemachine.decision import Decision, Replies

logger = logging.getLogger(__name__)

R = TypeVar("R")

#: The shortest delay before another attempt to complete a join phase without a possible leader.
_MIN_RETRY_MS = 100


class ClassicRebalances:
    def __init__(self, context: GroupContext, registry: GroupRegistry) -> None:
        self._context = context
        self._registry = registry

    # The join phase.

    def prepare_or_complete_join(self, group: ClassicGroup, reason: str, replies: Replies) -> None:
        """Start a rebalance, or complete the join phase of the current one if possible."""
        if CLASSIC_TRANSITIONS.allows(group.state, ClassicEvent.PREPARE_REBALANCE):
            self.prepare(group, reason, replies)
        else:
            self.maybe_complete_join(group, replies)

    def prepare(self, group: ClassicGroup, reason: str, replies: Replies) -> None:
        if group.state is ClassicState.COMPLETING_REBALANCE:
            self._reset_assignments(group, replies)
        self._cancel_pending_sync(group)
        initial = group.is_empty
        group.transition(ClassicEvent.PREPARE_REBALANCE, self._context.clock.time_ms())
        logger.info("group %s rebalances after generation %d: %s", group.group_id, group.generation, reason)
        if initial:
            delay_ms = self._context.settings().initial_rebalance_delay_ms
            self._schedule_initial_delay(group, delay_ms, max(group.rebalance_timeout_ms - delay_ms, 0))
        elif group.members and group.has_all_joined:
            self._complete_join(group, replies)
        else:
            self._schedule_join_timeout(group)

    def _reset_assignments(self, group: ClassicGroup, replies: Replies) -> None:
        for member in group.members.values():
            member.assignment = b""
        for member_id, promise in group.awaiting_sync.items():
            replies.append((promise, sync_error(ErrorCode.REBALANCE_IN_PROGRESS)))
            self.restart_session(group, group.members[member_id])
        group.awaiting_sync.clear()

    def _cancel_pending_sync(self, group: ClassicGroup) -> None:
        group.pending_sync.clear()
        self._context.timers.cancel(sync_key(group.group_id))

    def _schedule_join_timeout(self, group: ClassicGroup, min_delay_ms: int = 0) -> None:
        group_id = group.group_id
        delay_ms = max(group.rebalance_timeout_ms, min_delay_ms)
        self._context.timers.schedule(join_key(group_id), delay_ms, lambda: self._join_expired(group_id))

    def _schedule_initial_delay(self, group: ClassicGroup, delay_ms: int, remaining_ms: int) -> None:
        group_id = group.group_id
        self._context.timers.schedule(
            join_key(group_id),
            delay_ms,
            lambda: self._initial_delay_expired(group_id, delay_ms, remaining_ms),
        )

    def _initial_delay_expired(
        self, group_id: str, delay_ms: int, remaining_ms: int
    ) -> Decision[Entry, None]:
        group = self._registry.find_as(ClassicGroup, group_id)
        if group is None or not group.new_member_added or remaining_ms == 0:
            return self._join_expired(group_id)
        waiting = group

        def wait_again() -> None:
            waiting.new_member_added = False
            next_ms = min(self._context.settings().initial_rebalance_delay_ms, remaining_ms)
            self._schedule_initial_delay(waiting, next_ms, max(remaining_ms - delay_ms, 0))

        return Decision([], None, wait_again)

    def maybe_complete_join(self, group: ClassicGroup, replies: Replies) -> None:
        """Complete the join phase if all members have joined, except during the initial delay."""
        if group.state is not ClassicState.PREPARING_REBALANCE or group.previous_state is ClassicState.EMPTY:
            return
        if group.members and group.has_all_joined:
            self._complete_join(group, replies)

    def _join_expired(self, group_id: str) -> Decision[Entry, None]:
        """Complete with the members that have joined; static members stay until their session expires."""
        group = self._registry.find_as(ClassicGroup, group_id)
        if group is None or group.state is not ClassicState.PREPARING_REBALANCE:
            return Decision([], None)
        rebalancing = group
        late = [
            each.member_id
            for each in group.members.values()
            if each.instance_id is None and each.member_id not in group.awaiting_join
        ]
        if len(late) == len(group.members):
            return self._empty(group, late, None)
        if late:
            logger.info("members of group %s did not rejoin in time: %s", group_id, ", ".join(late))
        replies: Replies = []

        def complete() -> None:
            self._remove(rebalancing, late, replies)
            self._complete_join(rebalancing, replies)

        return Decision([], None, complete, replies)

    def _complete_join(self, group: ClassicGroup, replies: Replies) -> None:
        """Start the next generation with the current members; there is at least one."""
        if not self._elect_leader(group):
            logger.error("group %s cannot complete its rebalance: no member has joined", group.group_id)
            self._schedule_join_timeout(group, _MIN_RETRY_MS)
            return
        self._context.timers.cancel(join_key(group.group_id))
        group.next_generation(self._context.clock.time_ms())
        self._context.counts.completed_rebalances += 1
        awaiting, group.awaiting_join = group.awaiting_join, {}
        for member in group.members.values():
            promise = awaiting.get(member.member_id)
            if promise is not None:
                replies.append((promise, joined(group, member.member_id)))
            member.is_new = False
            self.restart_session(group, member)
        group_id, generation = group.group_id, group.generation
        logger.info("group %s has generation %d with %d members", group_id, generation, len(group.members))
        self._context.timers.schedule(
            sync_key(group_id), group.rebalance_timeout_ms, lambda: self._sync_expired(group_id, generation)
        )

    def _elect_leader(self, group: ClassicGroup) -> bool:
        """Keep the leader if it has joined, else elect a member that has; return whether there is one."""
        if group.leader not in group.awaiting_join:
            group.leader = next((each for each in group.members if each in group.awaiting_join), group.leader)
        return group.leader in group.awaiting_join

    # The sync phase.

    def _sync_expired(self, group_id: str, generation: int) -> Decision[Entry, None]:
        group = self._registry.find_as(ClassicGroup, group_id)
        in_sync_phase = (ClassicState.COMPLETING_REBALANCE, ClassicState.STABLE)
        if group is None or group.generation != generation or group.state not in in_sync_phase:
            return Decision([], None)
        if not group.pending_sync:
            return Decision([], None)
        late = sorted(group.pending_sync)
        return self.remove_members(group, late, f"{', '.join(late)} did not send SyncGroup in time", None)

    # Removing members.

    def remove_members(
        self, group: ClassicGroup, leaving: Collection[str], reason: str, response: R
    ) -> Decision[Entry, R]:
        """Remove members, pending ones included, and rebalance the others."""
        in_initial_delay = group.previous_state is ClassicState.EMPTY and _is_preparing(group)
        if not group.is_empty and not in_initial_delay and _is_empty_without(group, leaving):
            return self._empty(group, leaving, response)
        replies: Replies = []

        def remove() -> None:
            self._remove(group, leaving, replies)
            if group.state in (ClassicState.STABLE, ClassicState.COMPLETING_REBALANCE):
                self.prepare(group, reason, replies)
            else:
                self.maybe_complete_join(group, replies)

        return Decision([], response, remove, replies)

    def _empty(self, group: ClassicGroup, leaving: Collection[str], response: R) -> Decision[Entry, R]:
        record = empty_group_record(group, self._context.clock.time_ms())
        replies: Replies = []

        def remove() -> None:
            logger.info("group %s is empty with generation %d", group.group_id, group.generation)
            self._remove(group, leaving, replies)
            self._cancel_pending_sync(group)
            self._context.timers.cancel(join_key(group.group_id))

        return Decision([record], response, remove, replies)

    def _remove(self, group: ClassicGroup, leaving: Collection[str], replies: Replies) -> None:
        for member_id in leaving:
            fail_pending(group, member_id, ErrorCode.UNKNOWN_MEMBER_ID, replies)
            group.remove(member_id)
            self._context.timers.cancel(heartbeat_key(group.group_id, member_id))

    # Sessions.

    def restart_session(
        self, group: ClassicGroup, member: ClassicMember, timeout_ms: int | None = None
    ) -> None:
        """Restart the session timeout of a member that has sent a request."""
        self.schedule_session(group.group_id, member.member_id, timeout_ms or member.session_timeout_ms)

    def schedule_session(self, group_id: str, member_id: str, timeout_ms: int) -> None:
        self._context.timers.schedule(
            heartbeat_key(group_id, member_id), timeout_ms, lambda: self._session_expired(group_id, member_id)
        )

    def _session_expired(self, group_id: str, member_id: str) -> Decision[Entry, Any]:
        group = self._registry.find_as(ClassicGroup, group_id)
        if group is None or not _has_expired(group, member_id):
            return Decision([], None)
        logger.info("the session of %s in group %s has expired", member_id, group_id)
        expired = group
        if member_id in group.members and not _is_preparing(group):
            return self.remove_members(group, [member_id], f"the session of {member_id} has expired", None)
        if _is_preparing(group) and _is_empty_without(group, [member_id]):
            return self._empty(group, [member_id], None)
        replies: Replies = []

        def remove() -> None:
            self._remove(expired, [member_id], replies)
            if _is_preparing(expired) and expired.has_all_joined:
                self._complete_join(expired, replies)

        return Decision([], None, remove, replies)


def _is_preparing(group: ClassicGroup) -> bool:
    return group.state is ClassicState.PREPARING_REBALANCE


def _is_empty_without(group: ClassicGroup, leaving: Collection[str]) -> bool:
    """Return whether no member and no pending member remains."""
    return group.pending_join.issubset(leaving) and group.members.keys() <= set(leaving)


def _has_expired(group: ClassicGroup, member_id: str) -> bool:
    """Return whether a member without heartbeats is dead.

    Members that wait for a response cannot send heartbeats; new members do not get that credit.
    """
    member = group.members.get(member_id)
    if member is None:
        return member_id in group.pending_join
    waits = member_id in group.awaiting_join or member_id in group.awaiting_sync
    return member.is_new or not waits
