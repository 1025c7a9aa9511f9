"""Share groups of one shard: their requests, the replay of their records, descriptions and metadata."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from moldau.base.clock import Clock
from moldau.base.errors import KafkaError
from moldau.base.ids import TopicId
from moldau.groups.assignors import simple
from moldau.groups.context import GroupContext, Replays
from moldau.groups.modern.replay import (
    ModernReplay,
    changed_topics,
    replay_current,
    replay_member,
    replay_target,
    replay_target_epoch,
)
from moldau.groups.registry import GroupRegistry
from moldau.groups.share.context import ShareContext
from moldau.groups.share.group import ShareGroup
from moldau.groups.share.heartbeat import ShareHeartbeats
from moldau.groups.share.member import ShareMember
from moldau.groups.share.offsets import ShareOffsets
from moldau.groups.share.topics import ShareStateTopics
from moldau.metadata.delta import MetadataDelta
from moldau.metadata.image import MetadataImage
from moldau.protocol.messages.share_group_describe import (
    Assignment,
    DescribedGroup,
    Member,
    TopicPartitions,
)
from moldau.protocol.stored.share_groups import (
    ShareGroupCurrentMemberAssignmentKey,
    ShareGroupMemberMetadataKey,
    ShareGroupMetadataKey,
    ShareGroupStatePartitionMetadataKey,
    ShareGroupTargetAssignmentMemberKey,
    ShareGroupTargetAssignmentMetadataKey,
)
from moldau.statemachine.coordinator_records import Entry
from moldau.statemachine.decision import Decision


class ShareGroups:
    def __init__(self, context: GroupContext, registry: GroupRegistry) -> None:
        self._context = context
        self._registry = registry
        self._share_context = ShareContext(context, registry, self._fence)
        self._replay = ModernReplay(registry, ShareGroup)
        #: Deleted topics whose state is still to be removed from the groups.
        self._deleted_topics: set[TopicId] = set()
        self.heartbeats = ShareHeartbeats(self._share_context)
        self.offsets = ShareOffsets(self._share_context)
        self.replays = _replays(self._replay, context.clock)

    def _fence(self, group_id: str, member_id: str) -> Decision[Entry, Any]:
        return self.heartbeats.fence(group_id, member_id)

    # Descriptions.

    def describe(self, group_ids: Iterable[str]) -> list[DescribedGroup]:
        return [self._describe(group_id) for group_id in group_ids]

    def _describe(self, group_id: str) -> DescribedGroup:
        try:
            group = self._registry.get_as(ShareGroup, group_id, "share")
        except KafkaError as error:
            return DescribedGroup(group_id=group_id, error_code=error.code, error_message=error.message)
        return DescribedGroup(
            group_id=group_id,
            group_state=group.state_name,
            group_epoch=group.epoch,
            assignment_epoch=group.assignment_epoch,
            assignor_name=simple.NAME,
            members=[_described_member(member, self._context.image) for member in group.members.values()],
        )

    # Metadata.

    def activate(self) -> None:
        """Start the sessions of all loaded members."""
        for group in self._registry:
            if isinstance(group, ShareGroup):
                for member_id in group.members:
                    self._share_context.restart_session(group.group_id, member_id)

    def image_changed(self, delta: MetadataDelta, image: MetadataImage) -> None:
        self._replay.topics_changed(changed_topics(delta, image))
        for topic in delta.topics_deleted.values():
            self._share_context.hashes.forget(topic.name)
        if delta.topics_deleted:
            self._deleted_topics |= delta.topics_deleted.keys()
            self._context.timers.schedule("share-topics-deleted", 0, self._remove_deleted)

    def _remove_deleted(self) -> Decision[Entry, None]:
        decision = self.offsets.topics_deleted(set(self._deleted_topics))
        return Decision(decision.records, None, self._deleted_topics.clear)


def _described_member(member: ShareMember, image: MetadataImage) -> Member:
    topics = image.topics.by_id
    return Member(
        member_id=member.member_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.subscribed_topic_names),
        assignment=Assignment(
            topic_partitions=[
                TopicPartitions(topic_id=topic_id, topic_name=topics[topic_id].name, partitions=list(found))
                for topic_id, found in member.assigned.items()
                if topic_id in topics
            ]
        ),
    )


def _replays(replay: ModernReplay[ShareGroup], clock: Clock) -> Replays:
    def replay_topics(group: ShareGroup, key: Any, value: Any) -> None:
        group.topics = None if value is None else ShareStateTopics.from_record(value, clock.time_ms())

    with_group = replay.with_group
    return {
        ShareGroupMetadataKey: replay.replay_epoch,
        ShareGroupMemberMetadataKey: with_group(replay_member, subscribes=True),
        ShareGroupTargetAssignmentMetadataKey: with_group(replay_target_epoch),
        ShareGroupTargetAssignmentMemberKey: with_group(replay_target),
        ShareGroupCurrentMemberAssignmentKey: with_group(replay_current),
        ShareGroupStatePartitionMetadataKey: with_group(replay_topics),
    }
