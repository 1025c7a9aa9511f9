"""Classic groups of one shard: their requests, the replay of their records, their sessions."""

from __future__ import annotations

from typing import Any

from moldau.groups.classic.group import ClassicGroup
from moldau.groups.classic.join import ClassicJoins
from moldau.groups.classic.leave import ClassicLeaves
from moldau.groups.classic.rebalance import ClassicRebalances
from moldau.groups.classic.sync import ClassicSyncs
from moldau.groups.context import GroupContext, Replays
from moldau.groups.registry import GroupRegistry
from moldau.protocol.stored.classic_groups import GroupMetadataKey, GroupMetadataValue
from moldau.statemachine.coordinator_records import CoordinatorRecord


class ClassicGroups:
    def __init__(self, context: GroupContext, registry: GroupRegistry) -> None:
        self._context = context
        self._registry = registry
        self.rebalances = ClassicRebalances(context, registry)
        self.joins = ClassicJoins(context, registry, self.rebalances)
        self.syncs = ClassicSyncs(context, self.rebalances)
        self.leaves = ClassicLeaves(self.rebalances)
        self.replays: Replays = {GroupMetadataKey: self._replay}

    def activate(self) -> None:
        """Start the sessions of all loaded members; a group above `group.max.size` rebalances."""
        for group in self._registry:
            if not isinstance(group, ClassicGroup):
                continue
            for member in group.members.values():
                self.rebalances.restart_session(group, member)
            if len(group.members) > self._context.settings().max_size:
                self.rebalances.prepare(group, "it was loaded with more members than group.max.size", [])

    def _replay(self, record: CoordinatorRecord, offset: int) -> None:
        key: Any = record.key
        if not isinstance(record.value, GroupMetadataValue):
            self._registry.remove(key.group)
            return
        group = self._registry.find_as(ClassicGroup, key.group)
        if group is None:
            group = ClassicGroup(key.group, self._context.clock.time_ms())
            self._registry.put(group)
        group.replay(record.value)
