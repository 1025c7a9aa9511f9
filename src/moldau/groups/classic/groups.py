"""Everything about classic groups in one place for the shard: their requests, their records, their timers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from moldau.groups.classic.group import ClassicGroup
from moldau.groups.classic.join import ClassicJoins
from moldau.groups.classic.leave import ClassicLeaves
from moldau.groups.classic.rebalance import ClassicRebalances
from moldau.groups.classic.sync import ClassicSyncs
from moldau.groups.context import GroupContext, Replays, Requester
from moldau.groups.registry import GroupRegistry
from moldau.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from moldau.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from moldau.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from moldau.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from moldau.protocol.stored.classic_groups import GroupMetadataKey, GroupMetadataValue
from moldau.statemachine.coordinator_records import CoordinatorRecord, Entry
from moldau.statemachine.decision import Decision


class ClassicGroups:
    def __init__(self, context: GroupContext, registry: GroupRegistry) -> None:
        self._context = context
        self._registry = registry
        self.rebalances = ClassicRebalances(context, registry)
        self._joins = ClassicJoins(context, registry, self.rebalances)
        self._syncs = ClassicSyncs(context, self.rebalances)
        self._leaves = ClassicLeaves(self.rebalances)
        self.replays: Replays = {GroupMetadataKey: self._replay}

    def join(
        self, requester: Requester, request: JoinGroupRequest, first: Sequence[CoordinatorRecord] = ()
    ) -> Decision[Entry, JoinGroupResponse]:
        """`first` are records that make room for a classic group where another kind of group was."""
        return self._joins.join(requester, request, first)

    def sync(self, request: SyncGroupRequest, group: ClassicGroup) -> Decision[Entry, SyncGroupResponse]:
        return self._syncs.sync(request, group)

    def heartbeat(self, request: HeartbeatRequest, group: ClassicGroup) -> Decision[Entry, HeartbeatResponse]:
        return self._syncs.heartbeat(request, group)

    def leave(self, request: LeaveGroupRequest, group: ClassicGroup) -> Decision[Entry, LeaveGroupResponse]:
        return self._leaves.leave(request, group)

    def activate(self) -> None:
        """Give every member that was found a session; a group that has become too large rebalances."""
        for group in self._registry:
            if not isinstance(group, ClassicGroup):
                continue
            for member in group.members.values():
                self.rebalances.heard_from(group, member)
            if len(group.members) > self._context.settings().max_size:
                self.rebalances.begin(group, "it was loaded with more members than group.max.size", [])

    def _replay(self, record: CoordinatorRecord, offset: int) -> None:
        key: Any = record.key
        if not isinstance(record.value, GroupMetadataValue):
            self._registry.remove(key.group)
            return
        group = self._registry.find_as(ClassicGroup, key.group)
        if group is None:
            group = ClassicGroup(key.group, self._context.clock.time_ms())
            self._registry.put(group)
        group.adopt(record.value)
