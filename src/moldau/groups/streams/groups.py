"""Streams groups of one shard: their requests, the replay of their records, descriptions and metadata."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from moldau.base.errors import KafkaError
from moldau.groups.context import GroupContext, Replays
from moldau.groups.modern.replay import (
    ModernReplay,
    changed_topics,
    replay_current,
    replay_member,
    replay_target_epoch,
)
from moldau.groups.registry import GroupRegistry
from moldau.groups.streams.context import StreamsContext
from moldau.groups.streams.descriptions import described_group
from moldau.groups.streams.group import StreamsGroup
from moldau.groups.streams.heartbeat import StreamsHeartbeats
from moldau.groups.streams.member import MemberState
from moldau.groups.streams.tasks import Tasks, task_set
from moldau.groups.streams.topology import StreamsTopology
from moldau.metadata.delta import MetadataDelta
from moldau.metadata.image import MetadataImage
from moldau.protocol.messages.streams_group_describe import DescribedGroup
from moldau.protocol.stored.streams_groups import (
    StreamsGroupCurrentMemberAssignmentKey,
    StreamsGroupMemberMetadataKey,
    StreamsGroupMetadataKey,
    StreamsGroupTargetAssignmentMemberKey,
    StreamsGroupTargetAssignmentMetadataKey,
    StreamsGroupTopologyKey,
)
from moldau.statemachine.coordinator_records import Entry
from moldau.statemachine.decision import Decision


class StreamsGroups:
    def __init__(self, context: GroupContext, registry: GroupRegistry) -> None:
        self._registry = registry
        self._context = StreamsContext(context, registry, self._fence, self._assign)
        self._replay = ModernReplay(registry, StreamsGroup)
        self.heartbeats = StreamsHeartbeats(self._context)
        self.replays = _replays(self._replay)

    def _fence(self, group_id: str, member_id: str, reason: str, epoch: int | None) -> Decision[Entry, Any]:
        return self.heartbeats.fence(group_id, member_id, reason, epoch)

    def _assign(self, group_id: str) -> Decision[Entry, Any]:
        return self.heartbeats.assign(group_id)

    # Descriptions.

    def describe(self, group_ids: Iterable[str]) -> list[DescribedGroup]:
        return [self._describe(group_id) for group_id in group_ids]

    def _describe(self, group_id: str) -> DescribedGroup:
        try:
            return described_group(self._registry.get_as(StreamsGroup, group_id, "streams"))
        except KafkaError as error:
            return DescribedGroup(group_id=group_id, error_code=error.code, error_message=error.message)

    # Metadata.

    def activate(self) -> None:
        """Start the session and rebalance timeouts of all loaded members."""
        for group in self._registry:
            if not isinstance(group, StreamsGroup):
                continue
            for member in group.members.values():
                self._context.restart_session(group.group_id, member.member_id)
                if member.state is MemberState.UNREVOKED_TASKS:
                    self._context.schedule_rebalance_timeout(group.group_id, member)

    def image_changed(self, delta: MetadataDelta, image: MetadataImage) -> None:
        self._replay.topics_changed(changed_topics(delta, image))
        for topic in delta.topics_deleted.values():
            self._context.hashes.forget(topic.name)


def _replays(replay: ModernReplay[StreamsGroup]) -> Replays:
    with_group = replay.with_group
    return {
        StreamsGroupMetadataKey: replay.replay_epoch,
        StreamsGroupTopologyKey: with_group(_replay_topology, subscribes=True),
        StreamsGroupMemberMetadataKey: with_group(replay_member),
        StreamsGroupTargetAssignmentMetadataKey: with_group(replay_target_epoch),
        StreamsGroupTargetAssignmentMemberKey: with_group(_replay_target),
        StreamsGroupCurrentMemberAssignmentKey: with_group(replay_current),
    }


def _replay_topology(group: StreamsGroup, key: Any, value: Any) -> None:
    group.set_topology(None if value is None else StreamsTopology.from_record(value))


def _replay_target(group: StreamsGroup, key: Any, value: Any) -> None:
    target = None
    if value is not None:
        target = Tasks(
            task_set(value.active_tasks), task_set(value.standby_tasks), task_set(value.warmup_tasks)
        )
    group.set_target(key.member_id, target)
