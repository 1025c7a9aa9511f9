"""Makes stored records of share groups part of the state; nothing else changes what is stored of one."""

from __future__ import annotations

from typing import Any

from moldau.base.clock import Clock
from moldau.groups.context import Replays
from moldau.groups.modern.replay import (
    ModernReplay,
    replay_current,
    replay_member,
    replay_target,
    replay_target_epoch,
)
from moldau.groups.registry import GroupRegistry
from moldau.groups.share.group import ShareGroup
from moldau.groups.share.topics import ShareTopics
from moldau.protocol.stored.share_groups import (
    ShareGroupCurrentMemberAssignmentKey,
    ShareGroupMemberMetadataKey,
    ShareGroupMetadataKey,
    ShareGroupStatePartitionMetadataKey,
    ShareGroupTargetAssignmentMemberKey,
    ShareGroupTargetAssignmentMetadataKey,
)


class ShareReplay(ModernReplay[ShareGroup]):
    def __init__(self, registry: GroupRegistry, clock: Clock) -> None:
        super().__init__(registry, ShareGroup)
        self._clock = clock
        with_group = self.with_group
        self.replays: Replays = {
            ShareGroupMetadataKey: self.replay_epoch,
            ShareGroupMemberMetadataKey: with_group(replay_member, subscribes=True),
            ShareGroupTargetAssignmentMetadataKey: with_group(replay_target_epoch),
            ShareGroupTargetAssignmentMemberKey: with_group(replay_target),
            ShareGroupCurrentMemberAssignmentKey: with_group(replay_current),
            ShareGroupStatePartitionMetadataKey: with_group(self._topics),
        }

    def _topics(self, group: ShareGroup, key: Any, value: Any) -> None:
        group.topics = None if value is None else ShareTopics.from_record(value, self._clock.time_ms())
