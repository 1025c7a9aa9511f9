"""Removes members of consumer groups: members that leave, and members whose timeout has expired."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, TypeVar

from moldau.groups.consumer.context import ConsumerContext
from moldau.groups.consumer.group import ConsumerGroup
from moldau.groups.consumer.group_update import GroupUpdate
from moldau.groups.consumer.member import ConsumerMember
from moldau.groups.consumer.records import member_tombstones, regex_tombstone
from moldau.groups.migration.conversion import GroupConversion
from moldau.groups.modern.subscription import count, count_names, count_regex
from moldau.statemachine.coordinator_records import Entry
from moldau.statemachine.decision import Decision

logger = logging.getLogger(__name__)

R = TypeVar("R")


class ConsumerFencing:
    def __init__(self, context: ConsumerContext, conversion: GroupConversion) -> None:
        self._context = context
        self._conversion = conversion

    def fence(self, group_id: str, member_id: str, reason: str, epoch: int | None) -> Decision[Entry, Any]:
        """Remove a member whose timeout has expired; with an epoch, only if the member still has it."""
        group = self._context.registry.find_as(ConsumerGroup, group_id)
        member = None if group is None else group.members.get(member_id)
        if group is None or member is None or epoch not in (None, member.member_epoch):
            return Decision([], None)
        logger.info("fencing %s from group %s: %s", member_id, group_id, reason)
        return self.remove(group, [member], None)

    def remove(
        self, group: ConsumerGroup, members: Sequence[ConsumerMember], response: R
    ) -> Decision[Entry, R]:
        """Remove members; downgrade the group if only classic members remain."""
        if not members:
            return Decision([], response)
        update = GroupUpdate(self._context, group)
        if self._conversion.may_downgrade_without(group, members):
            reason = f"Downgrade group {group.group_id} from consumer to classic for member leaving."
            self._conversion.downgrade(update, leaving=members, rebalance_reason=reason)
        else:
            self._remove(update, members)
        return update.build(response)

    def _remove(self, update: GroupUpdate, members: Sequence[ConsumerMember]) -> None:
        group, group_id = update.group, update.group.group_id
        subscriptions = dict(group.subscriptions)
        regexes: dict[str, int] = {}
        for member in members:
            update.records += member_tombstones(group_id, member.member_id)
            count_names(subscriptions, member.subscribed_topic_names, -1)
            count(regexes, member.regex, 1)
        for regex, leaving in regexes.items():
            if group.regexes.get(regex) == leaving:
                update.records.append(regex_tombstone(group_id, regex))
                resolved = group.resolved_regexes.get(regex)
                count_regex(subscriptions, () if resolved is None else resolved.topics, -1)
        image = self._context.group_context.image
        update.bump_epoch(self._context.hashes.of_topics(subscriptions, image))
        for member in members:
            update.cancel_timers(member.member_id)
