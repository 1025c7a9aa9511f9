"""The update of a consumer group by one request: a decision, built step by step.

The steps are the same for every request of a member, whichever protocol it uses: update its subscription,
resolve its regular expression, bump the group epoch if subscriptions or topics have changed, compute a target
assignment for a new epoch, and reconcile the member with it.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from enum import Enum

from moldau.groups.assignors.spec import NOTHING, Assignment
from moldau.groups.consumer.context import ConsumerContext
from moldau.groups.consumer.group import ConsumerGroup
from moldau.groups.consumer.member import ConsumerMember, MemberState
from moldau.groups.consumer.reconciliation import OwnedByClient, Reconciliation
from moldau.groups.consumer.records import (
    current_record,
    epoch_record,
    member_record,
    member_tombstones,
    regex_record,
    regex_tombstone,
    subscription_metadata_tombstone,
    target_record,
)
from moldau.groups.consumer.target import TargetAssignment, subscribed_topics
from moldau.groups.context import Requester
from moldau.groups.modern.group import RefreshDeadline
from moldau.groups.modern.regex import UNRESOLVED, ResolvedRegex, check_regex
from moldau.groups.modern.subscription import Subscriptions, count, count_names, count_regex, is_homogeneous
from moldau.statemachine.coordinator_records import Entry
from moldau.statemachine.decision import DecisionBuilder
from moldau.statemachine.effects import ResolveRegexes

logger = logging.getLogger(__name__)

#: Unchanged topics are checked again after this time; a metadata change triggers the check earlier.
_METADATA_REFRESH_INTERVAL_MS = 2**31 - 1
#: The minimum time between two resolutions of a group's regular expressions.
_REGEX_MIN_INTERVAL_MS = 10_000


class RegexUpdate(Enum):
    UNCHANGED = 0
    #: The expression changed, and its topics are not known yet.
    CHANGED = 1
    CHANGED_AND_RESOLVED = 2


class GroupUpdate(DecisionBuilder[Entry]):
    def __init__(self, context: ConsumerContext, group: ConsumerGroup) -> None:
        super().__init__()
        self._context = context
        self._image = context.group_context.image
        self.group = group
        self._now_ms = context.group_context.clock.time_ms()
        self.epoch = group.epoch
        self._homogeneous: bool | None = None

    def cancel_timers(self, member_id: str) -> None:
        self.once_appended(lambda: self._context.timers.cancel_all(self.group.group_id, member_id))

    # The member's subscription.

    def replace_static_member(self, former: ConsumerMember, member_id: str) -> ConsumerMember:
        """Give the partitions and target of a static member to its new member id, with epoch 0 (KIP-345)."""
        group, group_id = self.group, self.group.group_id
        member = replace(former, member_id=member_id, member_epoch=0, previous_member_epoch=0)
        self.records += member_tombstones(group_id, former.member_id)
        self.records.append(member_record(group_id, member))
        self.records.append(target_record(group_id, member_id, group.targets.get(former.member_id, NOTHING)))
        self.records.append(current_record(group_id, member))
        if former.member_id != member_id:
            self.cancel_timers(former.member_id)
        logger.info("static member %s of group %s rejoins as %s", former.instance_id, group_id, member_id)
        return member

    def update_subscription(self, member: ConsumerMember, updated: ConsumerMember) -> bool:
        """Store a changed member; return whether its subscribed topic names have changed."""
        if updated == member:
            return False
        self.records.append(member_record(self.group.group_id, updated))
        return updated.subscribed_topic_names != member.subscribed_topic_names

    def update_regex(
        self, requester: Requester, member: ConsumerMember, updated: ConsumerMember
    ) -> RegexUpdate:
        """Validate a new expression, and request the resolution of the group's expressions if it is due.

        The expressions match only topics that the requester may describe.
        """
        group, old, new = self.group, member.regex, updated.regex
        status = RegexUpdate.UNCHANGED
        is_new = False
        if (member.subscribed_topic_regex or "") != (updated.subscribed_topic_regex or ""):
            status = RegexUpdate.CHANGED
            if old is not None and group.regexes.get(old) == 1:
                self.records.append(regex_tombstone(group.group_id, old))
            if new is None or (new in group.regexes and new in group.resolved_regexes):
                status = RegexUpdate.CHANGED_AND_RESOLVED
            elif new not in group.regexes:
                check_regex(new)
                is_new = True
        if is_new or group.regexes:
            self._request_resolution(requester, old, new, is_new)
        return status

    def _request_resolution(
        self, requester: Requester, old: str | None, new: str | None, is_new: bool
    ) -> None:
        group, image = self.group, self._image
        last = next(iter(group.resolved_regexes.values()), None)
        if group.resolving_regexes:
            return
        if last is not None and self._now_ms <= last.timestamp_ms + _REGEX_MIN_INTERVAL_MS:
            return
        regexes = dict(group.regexes)
        count(regexes, old, -1)
        count(regexes, new, 1)
        interval_ms = self._context.group_context.settings().consumer_regex_refresh_interval_ms
        due = (
            is_new
            or len(regexes) != len(group.resolved_regexes)
            or (0 if last is None else last.version) < self._context.last_topics_offset
            or last is None
            or self._now_ms > last.timestamp_ms + interval_ms
        )
        if due and regexes:
            self.effects.append(
                ResolveRegexes(
                    group.group_id,
                    tuple(regexes),
                    image.topics.by_name,
                    image.offset,
                    self._now_ms,
                    requester.may_describe,
                )
            )
            self.once_appended(lambda: self._set_resolving(True))

    def store_resolved(self, resolved: Mapping[str, ResolvedRegex]) -> None:
        """Store the topics of resolved expressions and their age; bump the epoch only if topics changed."""
        group = self.group
        subscriptions = dict(group.subscriptions)
        bump = False
        for regex, found in resolved.items():
            if regex not in group.regexes:
                continue
            known = group.resolved_regexes.get(regex, UNRESOLVED)
            if known.topics != found.topics:
                bump = True
                count_regex(subscriptions, known.topics, -1)
                count_regex(subscriptions, found.topics, 1)
            self.records.append(regex_record(group.group_id, regex, found))
        metadata_hash = self._context.hashes.of_topics(subscriptions, self._image)
        if bump or metadata_hash != group.metadata_hash:
            self.bump_epoch(metadata_hash)
            self._set_refreshed()

    def end_resolution(self) -> None:
        """Allow the next resolution."""
        self.once_appended(lambda: self._set_resolving(False))

    def _set_resolving(self, resolving: bool) -> None:
        group = self._replayed_group()
        if group is not None:
            group.resolving_regexes = resolving

    # The group epoch.

    def update_metadata(self, member: ConsumerMember, updated: ConsumerMember, bump: bool) -> None:
        """Bump the group epoch if `bump` is set or the metadata of subscribed topics has changed."""
        group = self.group
        if not bump and not self._metadata_expired():
            return
        regexes = dict(group.regexes)
        if member.regex != updated.regex:
            count(regexes, member.regex, -1)
            count(regexes, updated.regex, 1)
        subscriptions = self._subscriptions(member, updated)
        self._homogeneous = is_homogeneous(regexes, subscriptions, self._member_count(updated))
        metadata_hash = self._context.hashes.of_topics(subscriptions, self._image)
        if bump or metadata_hash != group.metadata_hash:
            self.bump_epoch(metadata_hash)
        self._set_refreshed()
        if group.has_subscription_metadata_record:
            self.records.append(subscription_metadata_tombstone(group.group_id))

    def _member_count(self, updated: ConsumerMember) -> int:
        """Return the number of members once the updated one has joined."""
        group = self.group
        is_known = updated.member_id in group.members or (updated.instance_id or "") in group.static_members
        return len(group.members) + (not is_known)

    def bump_epoch(self, metadata_hash: int) -> None:
        self.epoch = self.group.epoch + 1
        self._context.group_context.counts.consumer_rebalances += 1
        self.records.append(epoch_record(self.group.group_id, self.epoch, metadata_hash))
        logger.info("the epoch of group %s is %d", self.group.group_id, self.epoch)

    def _metadata_expired(self) -> bool:
        deadline = self.group.refresh_deadline
        return self._now_ms >= deadline.time_ms or self.group.epoch < deadline.epoch

    def _set_refreshed(self) -> None:
        deadline = RefreshDeadline(self._now_ms + _METADATA_REFRESH_INTERVAL_MS, self.epoch)

        def set_deadline() -> None:
            group = self._replayed_group()
            if group is not None:
                group.refresh_deadline = deadline

        self.once_appended(set_deadline)

    def _replayed_group(self) -> ConsumerGroup | None:
        """Return the registered group: replaying the records may have created or removed it."""
        return self._context.registry.find_as(ConsumerGroup, self.group.group_id)

    def _subscriptions(self, member: ConsumerMember, updated: ConsumerMember) -> Subscriptions:
        """Return the group's subscriptions after the update of a member."""
        group = self.group
        subscriptions = dict(group.subscriptions)
        count_names(subscriptions, member.subscribed_topic_names, -1)
        count_names(subscriptions, updated.subscribed_topic_names, 1)
        old = member.regex
        if old is not None and old != updated.regex and group.regexes.get(old) == 1:
            resolved = group.resolved_regexes.get(old)
            count_regex(subscriptions, () if resolved is None else resolved.topics, -1)
        return subscriptions

    # The target assignment.

    def update_target(self, member: ConsumerMember, updated: ConsumerMember) -> tuple[int, Assignment]:
        """Return the target epoch and the member's target; compute a new one if the group epoch is ahead.

        `consumer.assignment.interval.ms` delays the computation, so that one covers many changes.
        """
        group = self.group
        if group.assignment_epoch >= self.epoch or not self._may_assign():
            return group.assignment_epoch, group.target_of(updated)
        homogeneous = self._homogeneous
        if homogeneous is None:
            # A new member without a subscription does not change the group's, but is not subscribed to it.
            homogeneous = is_homogeneous(group.regexes, group.subscriptions, self._member_count(updated))
        assignor = group.preferred_assignor(member, updated) or self._context.assignors[0]
        computation = TargetAssignment(group, self._image, updated)
        records, targets = computation.compute(assignor, self.epoch, homogeneous, self._now_ms)
        logger.info("group %s has a target by %r for epoch %d", group.group_id, assignor, self.epoch)
        self.records.extend(records)
        return self.epoch, targets.get(updated.member_id, NOTHING)

    def _may_assign(self) -> bool:
        interval_ms = self._context.assignment_interval_ms(self.group.group_id)
        return self.group.may_assign(self._now_ms, interval_ms)

    # The member's assignment.

    def reconcile(
        self,
        member: ConsumerMember,
        target: tuple[int, Assignment],
        subscription_changed: bool,
        owned: OwnedByClient,
    ) -> ConsumerMember:
        target_epoch, assignment = target
        if not subscription_changed and member.is_reconciled_to(target_epoch):
            return member
        by_name = self._image.topics.by_name
        names = subscribed_topics(member, self.group.resolved_regexes)
        reconciled = Reconciliation(
            member,
            target_epoch,
            assignment,
            {by_name[name].id for name in names if name in by_name},
            self.group.partition_epochs,
            subscription_changed,
            owned,
        ).next()
        if reconciled != member:
            self.records.append(current_record(self.group.group_id, reconciled))
            if not reconciled.uses_classic_protocol:
                self.once_appended(lambda: self._update_rebalance_timeout(reconciled))
        return reconciled

    def _update_rebalance_timeout(self, member: ConsumerMember) -> None:
        timers, group_id = self._context.timers, self.group.group_id
        if member.state is MemberState.UNREVOKED_PARTITIONS:
            timers.schedule_rebalance_timeout(group_id, member)
        else:
            timers.cancel_rebalance_timeout(group_id, member.member_id)
