"""Makes stored records of consumer groups part of the state; nothing else changes what is stored of one."""

from __future__ import annotations

from typing import Any

from moldau.groups.consumer.group import ConsumerGroup
from moldau.groups.context import Replays
from moldau.groups.modern.regex import ResolvedRegex
from moldau.groups.modern.replay import (
    ModernReplay,
    replay_current,
    replay_member,
    replay_target,
    replay_target_epoch,
)
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


class ConsumerReplay(ModernReplay[ConsumerGroup]):
    def __init__(self, registry: GroupRegistry) -> None:
        super().__init__(registry, ConsumerGroup)
        with_group = self.with_group
        self.replays: Replays = {
            ConsumerGroupMetadataKey: self.replay_epoch,
            ConsumerGroupPartitionMetadataKey: with_group(_subscription_metadata),
            ConsumerGroupMemberMetadataKey: with_group(replay_member, subscribes=True),
            ConsumerGroupTargetAssignmentMetadataKey: with_group(replay_target_epoch),
            ConsumerGroupTargetAssignmentMemberKey: with_group(replay_target),
            ConsumerGroupCurrentMemberAssignmentKey: with_group(replay_current),
            ConsumerGroupRegularExpressionKey: with_group(_regex, subscribes=True),
        }


def _subscription_metadata(group: ConsumerGroup, key: Any, value: Any) -> None:
    group.has_subscription_metadata_record = value is not None


def _regex(group: ConsumerGroup, key: Any, value: Any) -> None:
    resolved = None
    if value is not None:
        resolved = ResolvedRegex(frozenset(value.topics), value.version, value.timestamp)
    group.set_resolved(key.regular_expression, resolved)
