"""Members that go, because they say so or because they were not heard from in time."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, TypeVar

from moldau.groups.consumer.change import GroupChange
from moldau.groups.consumer.group import ConsumerGroup
from moldau.groups.consumer.member import ConsumerMember
from moldau.groups.consumer.parts import ConsumerParts
from moldau.groups.consumer.records import member_tombstones, regex_tombstone
from moldau.groups.migration.migration import Migration
from moldau.groups.modern.subscription import count, count_names, count_regex
from moldau.statemachine.coordinator_records import Entry
from moldau.statemachine.decision import Decision

log = logging.getLogger(__name__)

R = TypeVar("R")


class ConsumerFencing:
    def __init__(self, parts: ConsumerParts, migration: Migration) -> None:
        self._parts = parts
        self._migration = migration

    def fence(self, group_id: str, member_id: str, reason: str, epoch: int | None) -> Decision[Entry, Any]:
        """A timer has run out; if an epoch is given, it counts only as long as the member is in it."""
        group = self._parts.registry.find_as(ConsumerGroup, group_id)
        member = None if group is None else group.members.get(member_id)
        if group is None or member is None or epoch not in (None, member.member_epoch):
            return Decision([], None)
        log.info("%s is fenced from group %s: %s", member_id, group_id, reason)
        return self.remove(group, [member], None)

    def remove(
        self, group: ConsumerGroup, members: Sequence[ConsumerMember], response: R
    ) -> Decision[Entry, R]:
        """The group goes on without these; it becomes a classic group if only classic members are left."""
        if not members:
            return Decision([], response)
        change = GroupChange(self._parts, group)
        if self._migration.may_downgrade_without(group, members):
            reason = f"Downgrade group {group.group_id} from consumer to classic for member leaving."
            self._migration.downgrade(change, leaving=members, rebalance_reason=reason)
        else:
            self._remove(change, members)
        return Decision(change.records, response, change.then, replies=change.replies)

    def _remove(self, change: GroupChange, members: Sequence[ConsumerMember]) -> None:
        group, group_id = change.group, change.group.group_id
        subscriptions = dict(group.subscriptions)
        regexes: dict[str, int] = {}
        for member in members:
            change.records += member_tombstones(group_id, member.member_id)
            count_names(subscriptions, member.subscribed_topic_names, -1)
            count(regexes, member.regex, 1)
        for regex, leaving in regexes.items():
            if group.regexes.get(regex) == leaving:
                change.records.append(regex_tombstone(group_id, regex))
                resolved = group.resolved_regexes.get(regex)
                count_regex(subscriptions, () if resolved is None else resolved.topics, -1)
        change.bump(self._parts.hashes.of_topics(subscriptions, self._parts.context.image))
        change.afterwards(lambda: self._forget(group_id, members))

    def _forget(self, group_id: str, members: Sequence[ConsumerMember]) -> None:
        for member in members:
            self._parts.timers.forget(group_id, member.member_id)
