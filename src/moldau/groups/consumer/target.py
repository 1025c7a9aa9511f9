"""The target assignment of a consumer group: the partitions of each member once all have reconciled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import TopicId
from moldau.groups.assignors import ASSIGNORS
from moldau.groups.assignors.java_order import strings_in_hash_order
from moldau.groups.assignors.spec import NOTHING, Assignment, GroupSpec, MemberSpec
from moldau.groups.consumer.group import ConsumerGroup
from moldau.groups.consumer.member import ConsumerMember
from moldau.groups.consumer.records import target_epoch_record, target_record
from moldau.groups.modern.regex import ResolvedRegex
from moldau.metadata.image import MetadataImage
from moldau.statemachine.coordinator_records import CoordinatorRecord


def subscribed_topics(member: ConsumerMember, resolved: Mapping[str, ResolvedRegex]) -> list[str]:
    """Return all topics a member subscribes to, by name or expression, in the order of Kafka's sets."""
    by_name = strings_in_hash_order(sorted(member.subscribed_topic_names))
    found = resolved.get(member.regex) if member.regex is not None else None
    if found is None:
        return by_name
    by_regex = strings_in_hash_order(sorted(found.topics))
    first, second = (by_name, by_regex) if len(by_name) > len(by_regex) else (by_regex, by_name)
    return list(dict.fromkeys([*first, *second]))


class TargetAssignment:
    """Computes the target of a group in which one member has joined, changed or replaced a static one."""

    def __init__(self, group: ConsumerGroup, image: MetadataImage, updated: ConsumerMember) -> None:
        self._group = group
        self._image = image
        self._updated = updated
        #: Topic ids by subscription: many members have the same one.
        self._topic_ids: dict[tuple[frozenset[str], str | None], Sequence[TopicId]] = {}

    def compute(
        self, assignor: str, epoch: int, homogeneous: bool, now_ms: int
    ) -> tuple[list[CoordinatorRecord], dict[str, Assignment]]:
        spec = self._spec(homogeneous)
        try:
            targets = ASSIGNORS[assignor](spec)
        except KafkaError as error:
            raise KafkaError(
                ErrorCode.UNKNOWN_SERVER_ERROR,
                f"Failed to compute a new target assignment for epoch {epoch}: {error.message}",
            ) from error
        group_id, known = self._group.group_id, self._group.targets
        records = [
            target_record(group_id, member_id, targets.get(member_id, NOTHING))
            for member_id in spec.members
            if known.get(member_id) != targets.get(member_id, NOTHING)
        ]
        records.append(target_epoch_record(group_id, epoch, now_ms))
        return records, targets

    def _spec(self, homogeneous: bool) -> GroupSpec:
        members = dict(self._group.members)
        members[self._updated.member_id] = self._updated
        replaced = self._replaced_member()
        if replaced is not None:
            members.pop(replaced, None)
        specs = {each: self._member_spec(members[each], replaced) for each in strings_in_hash_order(members)}
        topics = self._image.topics.by_id
        subscribed = {topic_id for topic_ids in self._topic_ids.values() for topic_id in topic_ids}
        counts = {topic_id: len(topics[topic_id].partitions) for topic_id in subscribed}
        return GroupSpec(specs, homogeneous, counts, self._group.target_owners)

    def _replaced_member(self) -> str | None:
        """Return the former member id of an updated static member, if it differs."""
        former = self._group.static_members.get(self._updated.instance_id or "")
        return None if former == self._updated.member_id else former

    def _member_spec(self, member: ConsumerMember, replaced: str | None) -> MemberSpec:
        holder = replaced if replaced is not None and member is self._updated else member.member_id
        return MemberSpec(
            self._subscribed(member), self._group.targets.get(holder, NOTHING), member.instance_id
        )

    def _subscribed(self, member: ConsumerMember) -> Sequence[TopicId]:
        key = (member.subscribed_topic_names, member.regex)
        found = self._topic_ids.get(key)
        if found is None:
            by_name = self._image.topics.by_name
            names = subscribed_topics(member, self._group.resolved_regexes)
            found = self._topic_ids[key] = [by_name[name].id for name in names if name in by_name]
        return found
