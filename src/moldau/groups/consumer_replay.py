"""Makes stored records of consumer groups part of the state; nothing else changes what is stored of one."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any

from moldau.groups.consumer_group import ConsumerGroup, RefreshDeadline
from moldau.groups.consumer_member import ConsumerMember
from moldau.groups.context import Replays
from moldau.groups.regex import ResolvedRegex
from moldau.groups.registry import GroupRegistry
from moldau.protocol.stored.consumer_groups import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMetadataKey,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMetadataKey,
)
from moldau.statemachine.coordinator_records import CoordinatorRecord

log = logging.getLogger(__name__)

#: Gets the group, the key and the value.
_Apply = Callable[[ConsumerGroup, Any, Any], None]


class ConsumerReplay:
    def __init__(self, registry: GroupRegistry) -> None:
        self._registry = registry
        #: Which groups to look at when a topic changes.
        self._groups_by_topic: dict[str, set[str]] = {}
        self.replays: Replays = {
            ConsumerGroupMetadataKey: self._replay_epoch,
            ConsumerGroupPartitionMetadataKey: self._with(_subscription_metadata),
            ConsumerGroupMemberMetadataKey: self._with(_member, subscribes=True),
            ConsumerGroupTargetAssignmentMetadataKey: self._with(_target_epoch),
            ConsumerGroupTargetAssignmentMemberKey: self._with(_target),
            ConsumerGroupCurrentMemberAssignmentKey: self._with(_current),
            ConsumerGroupRegularExpressionKey: self._with(_regex, subscribes=True),
        }

    def topics_changed(self, topics: Iterable[str]) -> None:
        """Groups that subscribe to them look at their topics again with the next heartbeat."""
        for topic in topics:
            for group_id in self._groups_by_topic.get(topic, ()):
                group = self._registry.find_as(ConsumerGroup, group_id)
                if group is not None:
                    group.refresh_deadline = RefreshDeadline()

    def _with(self, apply: _Apply, subscribes: bool = False) -> Callable[[CoordinatorRecord, int], None]:
        def replay(record: CoordinatorRecord, offset: int) -> None:
            key: Any = record.key
            group = self._group(key.group_id, create=record.value is not None)
            if group is None:
                return
            before = frozenset(group.subscriptions) if subscribes else frozenset()
            apply(group, key, record.value)
            if subscribes:
                self._index(group, before)

        return replay

    def _group(self, group_id: str, create: bool) -> ConsumerGroup | None:
        """The group; one that was of another kind has been removed by a record before."""
        group = self._registry.find_as(ConsumerGroup, group_id)
        if group is None and create:
            group = ConsumerGroup(group_id)
            self._registry.put(group)
        return group

    def _index(self, group: ConsumerGroup, before: frozenset[str]) -> None:
        for topic in before - group.subscriptions.keys():
            groups = self._groups_by_topic.get(topic, set())
            groups.discard(group.group_id)
            if not groups:
                self._groups_by_topic.pop(topic, None)
        for topic in group.subscriptions.keys() - before:
            self._groups_by_topic.setdefault(topic, set()).add(group.group_id)

    def _replay_epoch(self, record: CoordinatorRecord, offset: int) -> None:
        key: Any = record.key
        value: Any = record.value
        group = self._group(key.group_id, create=value is not None)
        if group is None:
            return
        if value is not None:
            group.epoch, group.metadata_hash = value.epoch, value.metadata_hash
            return
        if group.members:
            log.error("group %s is removed although it has %d members", key.group_id, len(group.members))
        self._registry.remove(key.group_id)


def _subscription_metadata(group: ConsumerGroup, key: Any, value: Any) -> None:
    group.has_subscription_metadata_record = value is not None


def _member(group: ConsumerGroup, key: Any, value: Any) -> None:
    if value is None:
        group.remove_member(key.member_id)
    else:
        member = group.members.get(key.member_id) or ConsumerMember(key.member_id)
        group.update_member(member.with_subscription(value))


def _target_epoch(group: ConsumerGroup, key: Any, value: Any) -> None:
    group.assignment_epoch = -1 if value is None else value.assignment_epoch
    group.assignment_timestamp_ms = 0 if value is None else value.assignment_timestamp


def _target(group: ConsumerGroup, key: Any, value: Any) -> None:
    if value is None:
        group.set_target(key.member_id, None)
    else:
        target = {each.topic_id: tuple(sorted(each.partitions)) for each in value.topic_partitions}
        group.set_target(key.member_id, target)


def _current(group: ConsumerGroup, key: Any, value: Any) -> None:
    member = group.members.get(key.member_id)
    if value is not None:
        group.update_member((member or ConsumerMember(key.member_id)).with_assignment(value))
    elif member is not None:
        group.update_member(member.gone())


def _regex(group: ConsumerGroup, key: Any, value: Any) -> None:
    resolved = None
    if value is not None:
        resolved = ResolvedRegex(frozenset(value.topics), value.version, value.timestamp)
    group.set_resolved(key.regular_expression, resolved)
