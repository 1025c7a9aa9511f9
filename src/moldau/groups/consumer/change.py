"""What one request changes in a consumer group, step by step, with the records and timers that follow from
it.

The steps are those of every request of a member, whichever protocol it speaks: take over what it says of
itself, resolve its regular expression, raise the group's epoch if subscriptions or topics have changed,
compute a target if the epoch has risen, and bring the member closer to it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from enum import Enum

from moldau.groups.assignors.spec import NOTHING, Assignment
from moldau.groups.classic.answers import Replies
from moldau.groups.consumer.group import ConsumerGroup
from moldau.groups.consumer.member import ConsumerMember, MemberState
from moldau.groups.consumer.parts import ConsumerParts
from moldau.groups.consumer.reconciliation import Reconciliation, Reported
from moldau.groups.consumer.records import (
    current_record,
    epoch_record,
    member_record,
    regex_tombstone,
    subscription_metadata_tombstone,
)
from moldau.groups.consumer.target import TargetAssignment, subscribed_topics
from moldau.groups.modern.group import RefreshDeadline
from moldau.groups.modern.regex import check_regex
from moldau.groups.modern.subscription import Subscriptions, count, count_names, count_regex, is_homogeneous
from moldau.statemachine.coordinator_records import CoordinatorRecord
from moldau.statemachine.effects import Effect, ResolveRegexes

log = logging.getLogger(__name__)

#: Kafka looks at unchanged topics again only after this long; a change of topics asks for it at once.
_METADATA_REFRESH_INTERVAL_MS = 2**31 - 1
#: New expressions of one group are collected for this long before they are matched.
_REGEX_MIN_INTERVAL_MS = 10_000


class RegexStatus(Enum):
    UNCHANGED = 0
    #: Changed, and what it matches is not known yet.
    CHANGED = 1
    CHANGED_AND_RESOLVED = 2


class GroupChange:
    def __init__(self, parts: ConsumerParts, group: ConsumerGroup) -> None:
        self._parts = parts
        self._context = parts.context
        self.group = group
        self.records: list[CoordinatorRecord] = []
        self.effects: list[Effect] = []
        #: May still grow in `then`.
        self.replies: Replies = []
        #: Changes to what is not stored, for when the records are taken.
        self._soft: list[Callable[[], None]] = []
        self._now_ms = parts.context.clock.time_ms()
        self.epoch = group.epoch
        self._homogeneous: bool | None = None

    def afterwards(self, change: Callable[[], None]) -> None:
        self._soft.append(change)

    def then(self) -> None:
        for change in self._soft:
            change()

    def forget_timers(self, member_id: str) -> None:
        self.afterwards(lambda: self._parts.timers.forget(self.group.group_id, member_id))

    # What the member says of itself.

    def subscribe(self, member: ConsumerMember, updated: ConsumerMember) -> bool:
        """Whether it names other topics than before."""
        if updated is member or updated == member:
            return False
        self.records.append(member_record(self.group.group_id, updated))
        return updated.subscribed_topic_names != member.subscribed_topic_names

    def resolve_regexes(self, member: ConsumerMember, updated: ConsumerMember) -> RegexStatus:
        group, old, new = self.group, member.regex, updated.regex
        status = RegexStatus.UNCHANGED
        is_new = False
        if (member.subscribed_topic_regex or "") != (updated.subscribed_topic_regex or ""):
            status = RegexStatus.CHANGED
            if old is not None and group.regexes.get(old) == 1:
                self.records.append(regex_tombstone(group.group_id, old))
            if new is None or (new in group.regexes and new in group.resolved_regexes):
                status = RegexStatus.CHANGED_AND_RESOLVED
            elif new not in group.regexes:
                check_regex(new)
                is_new = True
        if is_new or group.regexes:
            self._request_resolution(old, new, is_new)
        return status

    def _request_resolution(self, old: str | None, new: str | None, is_new: bool) -> None:
        group, image = self.group, self._context.image
        last = next(iter(group.resolved_regexes.values()), None)
        if group.resolving_regexes:
            return
        if last is not None and self._now_ms <= last.timestamp_ms + _REGEX_MIN_INTERVAL_MS:
            return
        regexes = dict(group.regexes)
        count(regexes, old, -1)
        count(regexes, new, 1)
        interval_ms = self._context.settings().consumer_regex_refresh_interval_ms
        due = (
            is_new
            or len(regexes) != len(group.resolved_regexes)
            or (0 if last is None else last.version) < self._parts.newest_topics_offset
            or last is None
            or self._now_ms > last.timestamp_ms + interval_ms
        )
        if due and regexes:
            self.effects.append(
                ResolveRegexes(
                    group.group_id, tuple(regexes), image.topics.by_name, image.offset, self._now_ms
                )
            )
            self.afterwards(lambda: self._set_soft("resolving_regexes", True))

    def regexes_resolved(self) -> None:
        self.afterwards(lambda: self._set_soft("resolving_regexes", False))

    # The group.

    def update_metadata(self, member: ConsumerMember, updated: ConsumerMember, bump: bool) -> None:
        """Raise the group's epoch if `bump`, or if the topics it depends on have changed."""
        group = self.group
        if not bump and not self._metadata_expired():
            return
        regexes = dict(group.regexes)
        if member.regex != updated.regex:
            count(regexes, member.regex, -1)
            count(regexes, updated.regex, 1)
        subscriptions = self._subscriptions(member, updated)
        is_known = updated.member_id in group.members or (updated.instance_id or "") in group.static_members
        members = len(group.members) + (not is_known)
        self._homogeneous = is_homogeneous(regexes, subscriptions, members)
        metadata_hash = self._parts.hashes.of_topics(subscriptions, self._context.image)
        if bump or metadata_hash != group.metadata_hash:
            self.bump(metadata_hash)
        self.refreshed()
        if group.has_subscription_metadata_record:
            self.records.append(subscription_metadata_tombstone(group.group_id))

    def bump(self, metadata_hash: int) -> None:
        self.epoch = self.group.epoch + 1
        self.records.append(epoch_record(self.group.group_id, self.epoch, metadata_hash))
        log.info("group %s has epoch %d", self.group.group_id, self.epoch)

    def _metadata_expired(self) -> bool:
        deadline = self.group.refresh_deadline
        return self._now_ms >= deadline.time_ms or self.group.epoch < deadline.epoch

    def refreshed(self) -> None:
        """The group's topics have been looked at."""
        deadline = RefreshDeadline(self._now_ms + _METADATA_REFRESH_INTERVAL_MS, self.epoch)
        self.afterwards(lambda: self._set_soft("refresh_deadline", deadline))

    def _set_soft(self, name: str, value: object) -> None:
        """On the group as it is by then: a group that is new was made by the replay."""
        group = self._parts.registry.find_as(ConsumerGroup, self.group.group_id)
        if group is not None:
            setattr(group, name, value)

    def _subscriptions(self, member: ConsumerMember, updated: ConsumerMember) -> Subscriptions:
        """The group's subscriptions once the member is updated."""
        group = self.group
        subscriptions = dict(group.subscriptions)
        count_names(subscriptions, member.subscribed_topic_names, -1)
        count_names(subscriptions, updated.subscribed_topic_names, 1)
        old = member.regex
        if old is not None and old != updated.regex and group.regexes.get(old) == 1:
            resolved = group.resolved_regexes.get(old)
            count_regex(subscriptions, () if resolved is None else resolved.topics, -1)
        return subscriptions

    # The target.

    def update_target(self, member: ConsumerMember, updated: ConsumerMember) -> tuple[int, Assignment]:
        """The epoch of the target in force and the member's part of it; a new one if the group's epoch is
        ahead.

        Computing one is put off while the last is too young, so that many changes in a row cost one.
        """
        group = self.group
        if group.assignment_epoch >= self.epoch or not self._may_assign():
            return group.assignment_epoch, group.target_of(updated)
        homogeneous = group.is_homogeneous if self._homogeneous is None else self._homogeneous
        assignor = group.preferred_assignor(member, updated) or self._parts.assignors[0]
        computation = TargetAssignment(group, self._context.image, updated)
        records, targets = computation.compute(assignor, self.epoch, homogeneous, self._now_ms)
        log.info("group %s has a target of %r for epoch %d", group.group_id, assignor, self.epoch)
        self.records.extend(records)
        return self.epoch, targets.get(updated.member_id, NOTHING)

    def _may_assign(self) -> bool:
        since = self.group.assignment_timestamp_ms
        interval_ms = self._parts.assignment_interval_ms(self.group.group_id)
        return since == 0 or interval_ms == 0 or self._now_ms >= since + interval_ms

    # The member's own assignment.

    def reconcile(
        self,
        member: ConsumerMember,
        target: tuple[int, Assignment],
        subscription_changed: bool,
        reported: Reported,
    ) -> ConsumerMember:
        target_epoch, assignment = target
        if not subscription_changed and member.is_reconciled_to(target_epoch):
            return member
        by_name = self._context.image.topics.by_name
        names = subscribed_topics(member, self.group.resolved_regexes)
        reconciled = Reconciliation(
            member,
            target_epoch,
            assignment,
            {by_name[name].id for name in names if name in by_name},
            self.group.partition_epochs,
            subscription_changed,
            reported,
        ).next()
        if reconciled != member:
            self.records.append(current_record(self.group.group_id, reconciled))
            if not reconciled.uses_classic_protocol:
                self.afterwards(lambda: self._limit_revocation(reconciled))
        return reconciled

    def _limit_revocation(self, member: ConsumerMember) -> None:
        if member.state is MemberState.UNREVOKED_PARTITIONS:
            self._parts.timers.expect_revocation(self.group.group_id, member)
        else:
            self._parts.timers.revoked(self.group.group_id, member.member_id)
