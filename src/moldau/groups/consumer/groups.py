"""All about consumer groups in one place for the shard: their requests, their records, their timers."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Any

from moldau.base.errors import KafkaError
from moldau.groups.classic.rebalance import ClassicRebalances
from moldau.groups.consumer.change import GroupChange
from moldau.groups.consumer.describe import described_group
from moldau.groups.consumer.fencing import ConsumerFencing
from moldau.groups.consumer.group import ConsumerGroup
from moldau.groups.consumer.heartbeat import ConsumerHeartbeats
from moldau.groups.consumer.member import MemberState
from moldau.groups.consumer.parts import ConsumerParts
from moldau.groups.consumer.regexes import take_resolved
from moldau.groups.consumer.replay import ConsumerReplay
from moldau.groups.consumer.timers import ConsumerTimers
from moldau.groups.context import GroupContext, Requester
from moldau.groups.migration.classic_members import ClassicMembers
from moldau.groups.migration.migration import Migration
from moldau.groups.modern.regex import ResolvedRegex
from moldau.groups.modern.replay import changed_topics
from moldau.groups.registry import GroupRegistry
from moldau.metadata.delta import MetadataDelta
from moldau.metadata.image import MetadataImage
from moldau.protocol.messages.consumer_group_describe import DescribedGroup
from moldau.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from moldau.statemachine.coordinator_records import Entry
from moldau.statemachine.decision import Decision

log = logging.getLogger(__name__)


class ConsumerGroups:
    def __init__(self, context: GroupContext, registry: GroupRegistry, rebalances: ClassicRebalances) -> None:
        self._context = context
        self._registry = registry
        self._parts = ConsumerParts(context, registry, ConsumerTimers(context.timers, self._fence))
        migration = Migration(self._parts, rebalances)
        self._fencing = ConsumerFencing(self._parts, migration)
        self._heartbeats = ConsumerHeartbeats(self._parts, self._fencing, migration)
        self._replay = ConsumerReplay(registry)
        #: Members that speak the classic protocol.
        self.classic = ClassicMembers(self._parts, self._fencing, migration)
        self.replays = self._replay.replays

    def heartbeat(
        self, requester: Requester, request: ConsumerGroupHeartbeatRequest
    ) -> Decision[Entry, ConsumerGroupHeartbeatResponse]:
        return self._heartbeats.heartbeat(requester, request)

    def describe(self, group_ids: Iterable[str]) -> list[DescribedGroup]:
        return [self._describe(group_id) for group_id in group_ids]

    def _describe(self, group_id: str) -> DescribedGroup:
        try:
            group = self._registry.get_as(ConsumerGroup, group_id, "consumer")
        except KafkaError as error:
            return DescribedGroup(group_id=group_id, error_code=error.code, error_message=error.message)
        return described_group(group, self._parts.assignors[0], self._context.image)

    def regexes_resolved(self, group_id: str, resolved: Mapping[str, ResolvedRegex]) -> Decision[Entry, None]:
        """What a decision asked for with `ResolveRegexes`; nothing if that failed."""
        group = self._registry.find_as(ConsumerGroup, group_id)
        if group is None:
            return Decision([], None)
        change = GroupChange(self._parts, group)
        if resolved:
            take_resolved(self._parts, change, resolved)
        else:
            # Nothing is written, so that this cannot fail as well: the group could never ask again.
            change.regexes_resolved()
        return Decision(change.records, None, change.then)

    # Following the metadata.

    def activate(self, image: MetadataImage) -> None:
        """Give every member that was found a session, and those who have to revoke their time for it."""
        self._parts.newest_topics_offset = image.offset
        for group in self._registry:
            if not isinstance(group, ConsumerGroup):
                continue
            timeout_ms = self._parts.session_timeout_ms(group.group_id)
            for member in group.members.values():
                self._parts.timers.heard_from(group.group_id, member.member_id, timeout_ms)
                if member.state is MemberState.UNREVOKED_PARTITIONS:
                    self._parts.timers.expect_revocation(group.group_id, member)

    def image_changed(self, delta: MetadataDelta, image: MetadataImage) -> None:
        if delta.topics_created:
            self._parts.newest_topics_offset = image.offset
        self._replay.topics_changed(changed_topics(delta, image))
        for topic in delta.topics_deleted.values():
            self._parts.hashes.forget(topic.name)

    def _fence(self, group_id: str, member_id: str, reason: str, epoch: int | None) -> Decision[Entry, Any]:
        return self._fencing.fence(group_id, member_id, reason, epoch)
