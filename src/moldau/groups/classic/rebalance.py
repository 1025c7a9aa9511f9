"""The rebalance of a classic group, from the first reason for one to the next generation.

Preparing: members are asked to join again; the join phase is over when all have, or when the longest
rebalance timeout has passed. A group that was empty waits `group.initial.rebalance.delay.ms` instead, and
again as long as members keep coming. Completing: every member has the new generation, the leader assigns, the
others wait; who has not asked for its assignment after the rebalance timeout is removed.

Nothing of this is stored. The one thing that is: a group whose last member is gone. Then the decision has a
record, and what is to be forgotten is forgotten only once the record is taken.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import Any, TypeVar

from moldau.base.errors import ErrorCode
from moldau.groups.classic.answers import Replies, dismiss, joined, refused_sync
from moldau.groups.classic.group import CAN_REBALANCE, ClassicGroup, ClassicState
from moldau.groups.classic.member import ClassicMember
from moldau.groups.classic.records import emptied_group_record
from moldau.groups.classic.timers import heartbeat_key, join_key, sync_key
from moldau.groups.context import GroupContext
from moldau.groups.registry import GroupRegistry
from moldau.statemachine.coordinator_records import Entry
from moldau.statemachine.decision import Decision

log = logging.getLogger(__name__)

R = TypeVar("R")

#: Members may ask for rebalances that take no time; a group that cannot go on still waits this long.
_AGAIN_MS = 100


class ClassicRebalances:
    def __init__(self, context: GroupContext, registry: GroupRegistry) -> None:
        self._context = context
        self._registry = registry

    # Beginning.

    def begin_or_complete(self, group: ClassicGroup, reason: str, replies: Replies) -> None:
        """Something about the members has changed: begin a rebalance, or go on with the one under way."""
        if group.state in CAN_REBALANCE:
            self.begin(group, reason, replies)
        else:
            self.complete_if_all_joined(group, replies)

    def begin(self, group: ClassicGroup, reason: str, replies: Replies) -> None:
        if group.state is ClassicState.COMPLETING_REBALANCE:
            self._withhold_assignments(group, replies)
        self._forget_sync(group)
        initial = group.is_empty
        group.transition(ClassicState.PREPARING_REBALANCE, self._context.clock.time_ms())
        log.info("group %s rebalances after generation %d: %s", group.group_id, group.generation, reason)
        if initial:
            delay_ms = self._context.settings().initial_rebalance_delay_ms
            self._wait_for_more(group, delay_ms, max(group.rebalance_timeout_ms - delay_ms, 0))
        elif group.members and group.has_all_joined:
            self._complete(group, replies)
        else:
            self._wait_for_joins(group)

    def _withhold_assignments(self, group: ClassicGroup, replies: Replies) -> None:
        for member in group.members.values():
            member.assignment = b""
        for member_id, promise in group.syncing.items():
            replies.append((promise, refused_sync(ErrorCode.REBALANCE_IN_PROGRESS)))
            self.heard_from(group, group.members[member_id])
        group.syncing.clear()

    def _forget_sync(self, group: ClassicGroup) -> None:
        group.pending_sync.clear()
        self._context.timers.cancel(sync_key(group.group_id))

    def _wait_for_joins(self, group: ClassicGroup, at_least_ms: int = 0) -> None:
        group_id = group.group_id
        delay_ms = max(group.rebalance_timeout_ms, at_least_ms)
        self._context.timers.schedule(join_key(group_id), delay_ms, lambda: self._joins_due(group_id))

    def _wait_for_more(self, group: ClassicGroup, delay_ms: int, remaining_ms: int) -> None:
        group_id = group.group_id
        self._context.timers.schedule(
            join_key(group_id), delay_ms, lambda: self._initial_delay_over(group_id, delay_ms, remaining_ms)
        )

    def _initial_delay_over(self, group_id: str, delay_ms: int, remaining_ms: int) -> Decision[Entry, None]:
        group = self._registry.find_as(ClassicGroup, group_id)
        if group is not None and group.new_member_added and remaining_ms != 0:
            group.new_member_added = False
            next_ms = min(self._context.settings().initial_rebalance_delay_ms, remaining_ms)
            self._wait_for_more(group, next_ms, max(remaining_ms - delay_ms, 0))
            return Decision([], None)
        return self._joins_due(group_id)

    # Completing.

    def complete_if_all_joined(self, group: ClassicGroup, replies: Replies) -> None:
        """Unless the group waits for more members before its first generation."""
        if group.state is not ClassicState.PREPARING_REBALANCE or group.previous_state is ClassicState.EMPTY:
            return
        if group.members and group.has_all_joined:
            self._complete(group, replies)

    def _joins_due(self, group_id: str) -> Decision[Entry, None]:
        """Go on with those who have joined; static members are given until their session ends."""
        group = self._registry.find_as(ClassicGroup, group_id)
        if group is None or group.state is not ClassicState.PREPARING_REBALANCE:
            return Decision([], None)
        late = [
            each.member_id
            for each in group.members.values()
            if each.instance_id is None and each.member_id not in group.joining
        ]
        replies: Replies = []
        if len(late) == len(group.members):
            return self._empty(group, late, None, replies)
        if late:
            log.info("members of group %s have not joined in time: %s", group_id, ", ".join(late))
        self._forget(group, late, replies)
        self._complete(group, replies)
        return Decision([], None, replies=replies)

    def _complete(self, group: ClassicGroup, replies: Replies) -> None:
        """Begin the next generation with the members there are; at least one is left."""
        if not self._elect(group):
            log.error("group %s cannot rebalance because no member has joined", group.group_id)
            self._wait_for_joins(group, _AGAIN_MS)
            return
        self._context.timers.cancel(join_key(group.group_id))
        group.next_generation(self._context.clock.time_ms())
        joining, group.joining = group.joining, {}
        for member in group.members.values():
            promise = joining.get(member.member_id)
            if promise is not None:
                replies.append((promise, joined(group, member.member_id)))
            member.is_new = False
            self.heard_from(group, member)
        log.info(
            "group %s has generation %d with %d members", group.group_id, group.generation, len(group.members)
        )
        group_id, generation = group.group_id, group.generation
        self._context.timers.schedule(
            sync_key(group_id), group.rebalance_timeout_ms, lambda: self._syncs_due(group_id, generation)
        )

    def _elect(self, group: ClassicGroup) -> bool:
        """A leader that has joined; the one there was, if it has."""
        if group.leader not in group.joining:
            group.leader = next((each for each in group.members if each in group.joining), group.leader)
        return group.leader in group.joining

    def _syncs_due(self, group_id: str, generation: int) -> Decision[Entry, None]:
        group = self._registry.find_as(ClassicGroup, group_id)
        waits = (ClassicState.COMPLETING_REBALANCE, ClassicState.STABLE)
        if group is None or group.generation != generation or group.state not in waits:
            return Decision([], None)
        if not group.pending_sync:
            return Decision([], None)
        late = sorted(group.pending_sync)
        return self.depart(group, late, f"{', '.join(late)} did not ask for an assignment", None, [])

    # Members that go.

    def depart(
        self, group: ClassicGroup, leaving: Collection[str], reason: str, response: R, replies: Replies
    ) -> Decision[Entry, R]:
        """Remove members, and those who were expected; who stays is told by a rebalance."""
        waits_for_more = group.previous_state is ClassicState.EMPTY and _is_preparing(group)
        if not group.is_empty and not waits_for_more and _nobody_is_left(group, leaving):
            return self._empty(group, leaving, response, replies)
        self._forget(group, leaving, replies)
        if group.state in (ClassicState.STABLE, ClassicState.COMPLETING_REBALANCE):
            self.begin(group, reason, replies)
        else:
            self.complete_if_all_joined(group, replies)
        return Decision([], response, replies=replies)

    def _empty(
        self, group: ClassicGroup, leaving: Collection[str], response: R, replies: Replies
    ) -> Decision[Entry, R]:
        record = emptied_group_record(group, self._context.clock.time_ms())

        def then() -> None:
            log.info("group %s is empty with generation %d", group.group_id, group.generation)
            self._forget(group, leaving, replies)
            self._forget_sync(group)
            self._context.timers.cancel(join_key(group.group_id))

        return Decision([record], response, on_appended=then, replies=replies)

    def _forget(self, group: ClassicGroup, leaving: Collection[str], replies: Replies) -> None:
        for member_id in leaving:
            dismiss(group, member_id, ErrorCode.UNKNOWN_MEMBER_ID, replies)
            group.remove(member_id)
            self._context.timers.cancel(heartbeat_key(group.group_id, member_id))

    # Sessions.

    def heard_from(self, group: ClassicGroup, member: ClassicMember, timeout_ms: int | None = None) -> None:
        """The member lives: its session begins anew."""
        self.expect(group.group_id, member.member_id, timeout_ms or member.session_timeout_ms)

    def expect(self, group_id: str, member_id: str, timeout_ms: int) -> None:
        self._context.timers.schedule(
            heartbeat_key(group_id, member_id), timeout_ms, lambda: self._session_over(group_id, member_id)
        )

    def _session_over(self, group_id: str, member_id: str) -> Decision[Entry, Any]:
        group = self._registry.find_as(ClassicGroup, group_id)
        if group is None or not self._counts_as_dead(group, member_id):
            return Decision([], None)
        log.info("%s of group %s has not been heard from and is removed", member_id, group_id)
        replies: Replies = []
        if member_id in group.members and not _is_preparing(group):
            return self.depart(group, [member_id], f"{member_id} has not been heard from", None, replies)
        if _is_preparing(group) and _nobody_is_left(group, [member_id]):
            return self._empty(group, [member_id], None, replies)
        self._forget(group, [member_id], replies)
        if _is_preparing(group) and group.has_all_joined:
            self._complete(group, replies)
        return Decision([], None, replies=replies)

    def _counts_as_dead(self, group: ClassicGroup, member_id: str) -> bool:
        """Who waits for an answer cannot send heartbeats; who has just come gets no such credit."""
        member = group.members.get(member_id)
        if member is None:
            return member_id in group.pending_join
        waits = member_id in group.joining or member_id in group.syncing
        return member.is_new or not waits


def _is_preparing(group: ClassicGroup) -> bool:
    return group.state is ClassicState.PREPARING_REBALANCE


def _nobody_is_left(group: ClassicGroup, leaving: Collection[str]) -> bool:
    """Whether the group comes to rest without these: nobody stays, and nobody is about to join."""
    return group.pending_join.issubset(leaving) and group.members.keys() <= set(leaving)
