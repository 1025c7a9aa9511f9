"""All about share groups in one place for the shard: their requests, their records, their timers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from moldau.base.errors import KafkaError
from moldau.base.ids import TopicId
from moldau.groups.assignors import simple
from moldau.groups.context import GroupContext, Requester
from moldau.groups.modern.replay import changed_topics
from moldau.groups.registry import GroupRegistry
from moldau.groups.share.group import ShareGroup
from moldau.groups.share.heartbeat import ShareHeartbeats
from moldau.groups.share.member import ShareMember
from moldau.groups.share.offsets import ShareOffsets
from moldau.groups.share.parts import ShareParts
from moldau.groups.share.replay import ShareReplay
from moldau.metadata.delta import MetadataDelta
from moldau.metadata.image import MetadataImage
from moldau.protocol.messages.share_group_describe import (
    Assignment,
    DescribedGroup,
    Member,
    TopicPartitions,
)
from moldau.protocol.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from moldau.statemachine.coordinator_records import Entry
from moldau.statemachine.decision import Decision


class ShareGroups:
    def __init__(self, context: GroupContext, registry: GroupRegistry) -> None:
        self._context = context
        self._registry = registry
        self._parts = ShareParts(context, registry, self._fence)
        self._heartbeats = ShareHeartbeats(self._parts)
        self._replay = ShareReplay(registry, context.clock)
        self._deleted: set[TopicId] = set()
        self.offsets = ShareOffsets(self._parts)
        self.replays = self._replay.replays

    def heartbeat(
        self, requester: Requester, request: ShareGroupHeartbeatRequest
    ) -> Decision[Entry, ShareGroupHeartbeatResponse]:
        return self._heartbeats.heartbeat(requester, request)

    def _fence(self, group_id: str, member_id: str) -> Decision[Entry, Any]:
        return self._heartbeats.fence(group_id, member_id)

    # Describing.

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
            members=[_described(member, self._context.image) for member in group.members.values()],
        )

    # Following the metadata.

    def activate(self) -> None:
        """Give every member that was found a session."""
        for group in self._registry:
            if isinstance(group, ShareGroup):
                for member_id in group.members:
                    self._parts.heard_from(group.group_id, member_id)

    def image_changed(self, delta: MetadataDelta, image: MetadataImage) -> None:
        self._replay.topics_changed(changed_topics(delta, image))
        for topic in delta.topics_deleted.values():
            self._parts.hashes.forget(topic.name)
        if delta.topics_deleted:
            self._deleted |= delta.topics_deleted.keys()
            self._context.timers.schedule("share-topics-deleted", 0, self._forget_deleted)

    def _forget_deleted(self) -> Decision[Entry, None]:
        decision = self.offsets.topics_deleted(set(self._deleted))
        return Decision(decision.records, None, self._deleted.clear)


def _described(member: ShareMember, image: MetadataImage) -> Member:
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
