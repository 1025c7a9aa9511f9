"""The replay of records that consumer, share and streams groups have in common."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

from moldau.groups.modern.group import ModernGroup, RefreshDeadline
from moldau.groups.registry import GroupRegistry
from moldau.metadata.delta import MetadataDelta
from moldau.metadata.image import MetadataImage
from moldau.statemachine.coordinator_records import CoordinatorRecord

logger = logging.getLogger(__name__)

G = TypeVar("G", bound=ModernGroup[Any, Any])
#: Arguments: group, key and value.
Apply = Callable[[G, Any, Any], None]


class ModernReplay(Generic[G]):
    def __init__(self, registry: GroupRegistry, group_type: type[G]) -> None:
        self._registry = registry
        self._group_type = group_type
        #: Group ids by subscribed topic.
        self._groups_by_topic: dict[str, set[str]] = {}

    def topics_changed(self, topics: Iterable[str]) -> None:
        """Make the groups that subscribe to these topics check them with the next heartbeat."""
        for topic in topics:
            for group_id in self._groups_by_topic.get(topic, ()):
                group = self._registry.find_as(self._group_type, group_id)
                if group is not None:
                    group.refresh_deadline = RefreshDeadline()

    def replay_epoch(self, record: CoordinatorRecord, offset: int) -> None:
        key: Any = record.key
        value: Any = record.value
        group = self._group(key.group_id, create=value is not None)
        if group is None:
            return
        if value is not None:
            group.set_epoch(value)
            return
        if group.members:
            logger.error("group %s was removed while it had %d members", key.group_id, len(group.members))
        self._registry.remove(key.group_id)
        for topic in group.subscriptions:
            self._forget(topic, key.group_id)

    def with_group(
        self, apply: Apply[G], subscribes: bool = False
    ) -> Callable[[CoordinatorRecord, int], None]:
        """Make a replay function; `subscribes` if the record may change the subscribed topics."""

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

    def _group(self, group_id: str, create: bool) -> G | None:
        """Return the group; an earlier record has removed one of another type."""
        group = self._registry.find_as(self._group_type, group_id)
        if group is None and create:
            group = self._group_type(group_id)
            self._registry.put(group)
        return group

    def _index(self, group: G, before: frozenset[str]) -> None:
        for topic in before - group.subscriptions.keys():
            self._forget(topic, group.group_id)
        for topic in group.subscriptions.keys() - before:
            self._groups_by_topic.setdefault(topic, set()).add(group.group_id)

    def _forget(self, topic: str, group_id: str) -> None:
        groups = self._groups_by_topic.get(topic, set())
        groups.discard(group_id)
        if not groups:
            self._groups_by_topic.pop(topic, None)


def replay_member(group: ModernGroup[Any, Any], key: Any, value: Any) -> None:
    if value is None:
        group.remove_member(key.member_id)
    else:
        member = group.members.get(key.member_id) or group.new_member(key.member_id)
        group.update_member(member.with_subscription(value))


def replay_target_epoch(group: ModernGroup[Any, Any], key: Any, value: Any) -> None:
    group.assignment_epoch = -1 if value is None else value.assignment_epoch
    group.assignment_timestamp_ms = 0 if value is None else value.assignment_timestamp


def replay_target(group: ModernGroup[Any, Any], key: Any, value: Any) -> None:
    if value is None:
        group.set_target(key.member_id, None)
    else:
        target = {each.topic_id: tuple(sorted(each.partitions)) for each in value.topic_partitions}
        group.set_target(key.member_id, target)


def replay_current(group: ModernGroup[Any, Any], key: Any, value: Any) -> None:
    member = group.members.get(key.member_id)
    if value is not None:
        group.update_member((member or group.new_member(key.member_id)).with_assignment(value))
    elif member is not None:
        group.update_member(member.without_assignment())


def changed_topics(delta: MetadataDelta, image: MetadataImage) -> list[str]:
    """Return the names of changed and deleted topics."""
    topics = image.topics.by_id
    changed = [topics[topic_id].name for topic_id in delta.topics_changed if topic_id in topics]
    return [*changed, *(topic.name for topic in delta.topics_deleted.values())]
