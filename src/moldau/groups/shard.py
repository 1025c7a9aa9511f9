"""One shard of the group coordinator: the groups of one partition of `__consumer_offsets`.

The shard composes the classes for each group type, for offsets and for administration, and routes requests
and stored records to them. They share the registry of groups, the offset store and the context; none of them
knows the shard. Each provides `replays`, a table from key type to replay function. Records of unknown types
are skipped: a newer release may have written them.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import TopicPartition
from moldau.groups.admin import GroupAdmin
from moldau.groups.classic.group import ClassicGroup
from moldau.groups.classic.groups import ClassicGroups
from moldau.groups.classic.responses import join_error, sync_error
from moldau.groups.consumer.group import ConsumerGroup
from moldau.groups.consumer.groups import ConsumerGroups
from moldau.groups.context import GroupContext, Replays, Requester
from moldau.groups.group import CommittedOffset
from moldau.groups.modern.regex import ResolvedRegex
from moldau.groups.offsets.commit import OffsetCommits
from moldau.groups.offsets.fetch import OffsetFetches
from moldau.groups.offsets.removal import OffsetRemoval
from moldau.groups.offsets.store import OffsetStore
from moldau.groups.registry import GroupRegistry
from moldau.groups.share.groups import ShareGroups
from moldau.groups.streams.group import StreamsGroup
from moldau.groups.streams.groups import StreamsGroups
from moldau.metadata.delta import MetadataDelta
from moldau.metadata.image import MetadataImage
from moldau.protocol.messages.consumer_group_describe import DescribedGroup as DescribedConsumerGroup
from moldau.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from moldau.protocol.messages.delete_groups import DeletableGroupResult
from moldau.protocol.messages.describe_groups import DescribedGroup
from moldau.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from moldau.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from moldau.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from moldau.protocol.messages.list_groups import ListedGroup
from moldau.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from moldau.protocol.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from moldau.protocol.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchResponseGroup
from moldau.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from moldau.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse
from moldau.statemachine.coordinator_records import EndTransaction, Entry
from moldau.statemachine.decision import Decision

logger = logging.getLogger(__name__)


R = TypeVar("R")


class GroupShard:
    def __init__(self, context: GroupContext) -> None:
        self._context = context
        self._counts = context.counts
        self.registry = GroupRegistry()
        self._store = OffsetStore()
        self._classic = ClassicGroups(context, self.registry)
        self._consumer = ConsumerGroups(context, self.registry, self._classic.rebalances)
        self.share = ShareGroups(context, self.registry)
        self.streams = StreamsGroups(context, self.registry)
        self._commits = OffsetCommits(context, self.registry, self._store, self._classic.rebalances)
        self._fetches = OffsetFetches(self.registry, self._store)
        self._removal = OffsetRemoval(context, self.registry, self._store)
        self._admin = GroupAdmin(context, self.registry, self._removal)
        self._replays: Replays = {
            **self._classic.replays,
            **self._consumer.replays,
            **self.share.replays,
            **self.streams.replays,
            **self._commits.replays,
        }

    # State.

    def replay(self, entries: Sequence[Entry], base_offset: int) -> None:
        for offset, entry in enumerate(entries, base_offset):
            if isinstance(entry, EndTransaction):
                self._store.end_transaction(entry)
                continue
            replay = self._replays.get(type(entry.key))
            if replay is None:
                logger.info("skipping a %s record at offset %d", type(entry.key).__name__, offset)
            else:
                replay(entry, offset)

    def activate(self, image: MetadataImage) -> None:
        self._context.image = image
        self._classic.activate()
        self._consumer.activate(image)
        self.share.activate()
        self.streams.activate()
        self._removal.schedule_expiration()

    def image_changed(self, delta: MetadataDelta, image: MetadataImage) -> None:
        self._context.image = image
        self._consumer.image_changed(delta, image)
        self.share.image_changed(delta, image)
        self.streams.image_changed(delta, image)
        if delta.topics_deleted:
            self._removal.topics_deleted(delta.topics_deleted)

    # The classic protocol.

    def join_group(
        self, requester: Requester, request: JoinGroupRequest
    ) -> Decision[Entry, JoinGroupResponse]:
        group = self.registry.find(request.group_id)
        if group is None or isinstance(group, ClassicGroup):
            return self._classic.joins.join(requester, request)
        if isinstance(group, ConsumerGroup):
            if group.is_empty:
                return self._classic.joins.join(requester, request, group.tombstones())
            return self._consumer.classic.join(requester, request, group)
        if isinstance(group, StreamsGroup) and group.is_empty:
            return self._classic.joins.join(requester, request, group.tombstones())
        return Decision([], join_error(ErrorCode.INCONSISTENT_GROUP_PROTOCOL))

    def sync_group(
        self, requester: Requester, request: SyncGroupRequest
    ) -> Decision[Entry, SyncGroupResponse]:
        group = self.registry.find(request.group_id)
        if isinstance(group, ClassicGroup):
            return self._classic.syncs.sync(request, group)
        if isinstance(group, ConsumerGroup) and not group.is_empty:
            return self._consumer.classic.sync(request, group)
        return Decision([], sync_error(ErrorCode.UNKNOWN_MEMBER_ID))

    def heartbeat(
        self, requester: Requester, request: HeartbeatRequest
    ) -> Decision[Entry, HeartbeatResponse]:
        group = self.registry.find(request.group_id)
        if isinstance(group, ClassicGroup):
            return self._classic.syncs.heartbeat(request, group)
        if isinstance(group, ConsumerGroup):
            return self._consumer.classic.heartbeat(request, group)
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Group {request.group_id} not found.")

    def leave_group(
        self, requester: Requester, request: LeaveGroupRequest
    ) -> Decision[Entry, LeaveGroupResponse]:
        group = self.registry.find(request.group_id)
        if isinstance(group, ClassicGroup):
            return self._classic.leaves.leave(request, group)
        if isinstance(group, ConsumerGroup):
            return self._consumer.classic.leave(request, group)
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Group {request.group_id} not found.")

    # The consumer protocol.

    def consumer_group_heartbeat(
        self, requester: Requester, request: ConsumerGroupHeartbeatRequest
    ) -> Decision[Entry, ConsumerGroupHeartbeatResponse]:
        return self._consumer.heartbeats.heartbeat(requester, request)

    def describe_consumer_groups(self, group_ids: Sequence[str]) -> list[DescribedConsumerGroup]:
        return self._consumer.describe(group_ids)

    def regexes_resolved(self, group_id: str, resolved: Mapping[str, ResolvedRegex]) -> Decision[Entry, None]:
        return self._consumer.regexes_resolved(group_id, resolved)

    # Offsets.

    def committed_offsets(self, group_id: str) -> Mapping[TopicPartition, CommittedOffset]:
        return self._store.of_group(group_id)

    def commit_offsets(
        self, requester: Requester, request: OffsetCommitRequest
    ) -> Decision[Entry, OffsetCommitResponse]:
        return self._counted(self._commits.commit(requester, request))

    def commit_offsets_in_transaction(
        self, requester: Requester, request: TxnOffsetCommitRequest
    ) -> Decision[Entry, TxnOffsetCommitResponse]:
        return self._counted(self._commits.commit_in_transaction(requester, request))

    def _counted(self, decision: Decision[Entry, R]) -> Decision[Entry, R]:
        self._counts.offset_commits += len(decision.records)
        return decision

    def end_transaction(self, end: EndTransaction) -> Decision[Entry, None]:
        """Commit or drop the pending offsets of a producer."""
        return Decision([end], None)

    def fetch_offsets(
        self, request: OffsetFetchRequestGroup, *, require_stable: bool
    ) -> OffsetFetchResponseGroup:
        return self._fetches.fetch(request, require_stable)

    def delete_offsets(self, request: OffsetDeleteRequest) -> Decision[Entry, OffsetDeleteResponse]:
        decision = self._removal.delete(request)
        self._counts.offset_deletions += len(decision.records)
        return decision

    # All groups.

    def list_groups(self, states: Iterable[str], types: Iterable[str]) -> list[ListedGroup]:
        return self._admin.listed(states, types)

    def describe_groups(self, requester: Requester, group_ids: Sequence[str]) -> list[DescribedGroup]:
        return self._admin.describe(requester, group_ids)

    def delete_groups(self, group_ids: Sequence[str]) -> Decision[Entry, Sequence[DeletableGroupResult]]:
        return self._admin.delete(group_ids)
