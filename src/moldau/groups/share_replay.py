"""Makes stored records of share groups part of the state; nothing else changes what is stored of one."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any

from moldau.base.clock import Clock
from moldau.groups.consumer_group import RefreshDeadline
from moldau.groups.context import Replays
from moldau.groups.registry import GroupRegistry
from moldau.groups.share_group import ShareGroup
from moldau.groups.share_member import ShareMember
from moldau.groups.share_topics import ShareTopics
from moldau.protocol.stored.share_groups import (
    ShareGroupCurrentMemberAssignmentKey,
    ShareGroupMemberMetadataKey,
    ShareGroupMetadataKey,
    ShareGroupStatePartitionMetadataKey,
    ShareGroupTargetAssignmentMemberKey,
    ShareGroupTargetAssignmentMetadataKey,
)
from moldau.statemachine.coordinator_records import CoordinatorRecord

log = logging.getLogger(__name__)

#: Gets the group, the key and the value.
_Apply = Callable[[ShareGroup, Any, Any], None]


class ShareReplay:
    def __init__(self, registry: GroupRegistry, clock: Clock) -> None:
        self._registry = registry
        self._clock = clock
        self.replays: Replays = {
            ShareGroupMetadataKey: self._replay_epoch,
            ShareGroupMemberMetadataKey: self._with(_member),
            ShareGroupTargetAssignmentMetadataKey: self._with(_target_epoch),
            ShareGroupTargetAssignmentMemberKey: self._with(_target),
            ShareGroupCurrentMemberAssignmentKey: self._with(_current),
            ShareGroupStatePartitionMetadataKey: self._with(self._topics),
        }

    def topics_changed(self, topics: Iterable[str]) -> None:
        """Groups that subscribe to them look at their topics again with the next heartbeat."""
        changed = set(topics)
        for group in self._registry:
            if isinstance(group, ShareGroup) and not changed.isdisjoint(group.subscriptions):
                group.refresh_deadline = RefreshDeadline()

    def _with(self, apply: _Apply) -> Callable[[CoordinatorRecord, int], None]:
        def replay(record: CoordinatorRecord, offset: int) -> None:
            key: Any = record.key
            group = self._group(key.group_id, create=record.value is not None)
            if group is not None:
                apply(group, key, record.value)

        return replay

    def _group(self, group_id: str, create: bool) -> ShareGroup | None:
        group = self._registry.find_as(ShareGroup, group_id)
        if group is None and create:
            group = ShareGroup(group_id)
            self._registry.put(group)
        return group

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

    def _topics(self, group: ShareGroup, key: Any, value: Any) -> None:
        group.topics = None if value is None else ShareTopics.from_record(value, self._clock.time_ms())


def _member(group: ShareGroup, key: Any, value: Any) -> None:
    if value is None:
        group.remove_member(key.member_id)
    else:
        member = group.members.get(key.member_id) or ShareMember(key.member_id)
        group.update_member(member.with_subscription(value))


def _target_epoch(group: ShareGroup, key: Any, value: Any) -> None:
    group.assignment_epoch = -1 if value is None else value.assignment_epoch
    group.assignment_timestamp_ms = 0 if value is None else value.assignment_timestamp


def _target(group: ShareGroup, key: Any, value: Any) -> None:
    group.targets.pop(key.member_id, None)
    if value is not None:
        group.targets[key.member_id] = {
            each.topic_id: tuple(sorted(each.partitions)) for each in value.topic_partitions
        }


def _current(group: ShareGroup, key: Any, value: Any) -> None:
    member = group.members.get(key.member_id)
    if value is not None:
        group.update_member((member or ShareMember(key.member_id)).with_assignment(value))
    elif member is not None:
        group.update_member(member.gone())
