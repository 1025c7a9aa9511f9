"""Consumer groups of one shard: their requests, the replay of their records, descriptions and metadata."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from moldau.base.errors import KafkaError
from moldau.base.ids import TopicId
from moldau.groups.assignors.spec import NOTHING
from moldau.groups.classic.rebalance import ClassicRebalances
from moldau.groups.consumer.context import ConsumerContext
from moldau.groups.consumer.fencing import ConsumerFencing
from moldau.groups.consumer.group import ConsumerGroup
from moldau.groups.consumer.group_update import GroupUpdate
from moldau.groups.consumer.heartbeat import ConsumerHeartbeats
from moldau.groups.consumer.member import ConsumerMember, MemberState
from moldau.groups.consumer.timers import ConsumerTimers
from moldau.groups.context import GroupContext, Replays
from moldau.groups.migration.classic_members import ClassicMembers
from moldau.groups.migration.conversion import GroupConversion
from moldau.groups.modern.regex import ResolvedRegex
from moldau.groups.modern.replay import (
    ModernReplay,
    changed_topics,
    replay_current,
    replay_member,
    replay_target,
    replay_target_epoch,
)
from moldau.groups.registry import GroupRegistry
from moldau.metadata.delta import MetadataDelta
from moldau.metadata.image import MetadataImage
from moldau.protocol.messages.consumer_group_describe import (
    Assignment,
    DescribedGroup,
    Member,
    TopicPartitions,
)
from moldau.protocol.stored.consumer_groups import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMetadataKey,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMetadataKey,
)
from moldau.statemachine.coordinator_records import Entry
from moldau.statemachine.decision import Decision

_CLASSIC_MEMBER = 0
_CONSUMER_MEMBER = 1


class ConsumerGroups:
    def __init__(self, context: GroupContext, registry: GroupRegistry, rebalances: ClassicRebalances) -> None:
        self._group_context = context
        self._registry = registry
        self._context = ConsumerContext(context, registry, ConsumerTimers(context.timers, self._fence))
        conversion = GroupConversion(self._context, rebalances)
        self._fencing = ConsumerFencing(self._context, conversion)
        self._replay = ModernReplay(registry, ConsumerGroup)
        self.heartbeats = ConsumerHeartbeats(self._context, self._fencing, conversion)
        #: Members that use the classic protocol.
        self.classic = ClassicMembers(self._context, self._fencing, conversion)
        self.replays = _replays(self._replay)

    def regexes_resolved(self, group_id: str, resolved: Mapping[str, ResolvedRegex]) -> Decision[Entry, None]:
        """Store the result of the effect `ResolveRegexes`; an empty one if it could not be stored."""
        group = self._registry.find_as(ConsumerGroup, group_id)
        if group is None:
            return Decision([], None)
        update = GroupUpdate(self._context, group)
        # Without records this cannot be refused again; otherwise the group could never resolve again.
        if resolved:
            update.store_resolved(resolved)
        update.end_resolution()
        return update.build(None)

    def _fence(self, group_id: str, member_id: str, reason: str, epoch: int | None) -> Decision[Entry, Any]:
        return self._fencing.fence(group_id, member_id, reason, epoch)

    # Metadata.

    def activate(self, image: MetadataImage) -> None:
        """Start the session and rebalance timeouts of all loaded members."""
        self._context.last_topics_offset = image.offset
        for group in self._registry:
            if not isinstance(group, ConsumerGroup):
                continue
            timeout_ms = self._context.session_timeout_ms(group.group_id)
            for member in group.members.values():
                self._context.timers.restart_session(group.group_id, member.member_id, timeout_ms)
                if member.state is MemberState.UNREVOKED_PARTITIONS:
                    self._context.timers.schedule_rebalance_timeout(group.group_id, member)

    def image_changed(self, delta: MetadataDelta, image: MetadataImage) -> None:
        if delta.topics_created:
            self._context.last_topics_offset = image.offset
        self._replay.topics_changed(changed_topics(delta, image))
        for topic in delta.topics_deleted.values():
            self._context.hashes.forget(topic.name)

    # Descriptions.

    def describe(self, group_ids: Iterable[str]) -> list[DescribedGroup]:
        return [self._describe(group_id) for group_id in group_ids]

    def _describe(self, group_id: str) -> DescribedGroup:
        try:
            group = self._registry.get_as(ConsumerGroup, group_id, "consumer")
        except KafkaError as error:
            return DescribedGroup(group_id=group_id, error_code=error.code, error_message=error.message)
        image = self._group_context.image
        return DescribedGroup(
            group_id=group_id,
            group_state=group.state_name,
            group_epoch=group.epoch,
            assignment_epoch=group.assignment_epoch,
            assignor_name=group.preferred_assignor(None, None) or self._context.assignors[0],
            members=[_described_member(group, member, image) for member in group.members.values()],
        )


def _described_member(group: ConsumerGroup, member: ConsumerMember, image: MetadataImage) -> Member:
    owned: dict[TopicId, list[int]] = {}
    for partitions in (member.assigned, member.pending_revocation):
        for topic_id, found in partitions.items():
            owned.setdefault(topic_id, []).extend(found)
    return Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.subscribed_topic_names),
        subscribed_topic_regex=member.subscribed_topic_regex,
        assignment=_assignment(owned, image),
        target_assignment=_assignment(group.targets.get(member.member_id, NOTHING), image),
        member_type=_CLASSIC_MEMBER if member.uses_classic_protocol else _CONSUMER_MEMBER,
    )


def _assignment(partitions: Mapping[TopicId, Iterable[int]], image: MetadataImage) -> Assignment:
    """Deleted topics are left out."""
    topics = image.topics.by_id
    return Assignment(
        topic_partitions=[
            TopicPartitions(topic_id=topic_id, topic_name=topics[topic_id].name, partitions=list(found))
            for topic_id, found in partitions.items()
            if topic_id in topics
        ]
    )


def _replays(replay: ModernReplay[ConsumerGroup]) -> Replays:
    with_group = replay.with_group
    return {
        ConsumerGroupMetadataKey: replay.replay_epoch,
        ConsumerGroupPartitionMetadataKey: with_group(_replay_subscription_metadata),
        ConsumerGroupMemberMetadataKey: with_group(replay_member, subscribes=True),
        ConsumerGroupTargetAssignmentMetadataKey: with_group(replay_target_epoch),
        ConsumerGroupTargetAssignmentMemberKey: with_group(replay_target),
        ConsumerGroupCurrentMemberAssignmentKey: with_group(replay_current),
        ConsumerGroupRegularExpressionKey: with_group(_replay_regex, subscribes=True),
    }


def _replay_subscription_metadata(group: ConsumerGroup, key: Any, value: Any) -> None:
    group.has_subscription_metadata_record = value is not None


def _replay_regex(group: ConsumerGroup, key: Any, value: Any) -> None:
    resolved = None
    if value is not None:
        resolved = ResolvedRegex(frozenset(value.topics), value.version, value.timestamp)
    group.set_resolved(key.regular_expression, resolved)
