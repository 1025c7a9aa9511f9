"""A streams group: its members, its topology, their target assignment and the owners of its tasks.

All state comes from replayed records, except the fields marked soft. The configured topology is also soft: it
is derived from the stored topology and the metadata by the next heartbeat.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from moldau.groups.group import STREAMS, BaseTimestamp, CheckPartition
from moldau.groups.modern.group import ModernGroup, RefreshDeadline
from moldau.groups.modern.subscription import SubscriptionCount
from moldau.groups.streams.configured_topology import ConfiguredTopology
from moldau.groups.streams.member import StreamsMember
from moldau.groups.streams.offset_checks import check_commit, check_fetch
from moldau.groups.streams.process_ids import TaskProcesses
from moldau.groups.streams.records import group_tombstones
from moldau.groups.streams.tasks import Tasks
from moldau.groups.streams.topology import StreamsTopology
from moldau.groups.timer_keys import (
    initial_rebalance_key,
    rebalance_timeout_key,
    session_timeout_key,
)
from moldau.statemachine.coordinator_records import CoordinatorRecord
from moldau.statemachine.timers import Timers

NOT_READY = "NotReady"


class StreamsGroup(ModernGroup[StreamsMember, Tasks]):
    type: ClassVar[str] = STREAMS
    protocol_type: ClassVar[str] = STREAMS

    def __init__(self, group_id: str) -> None:
        super().__init__(group_id)
        self.topology: StreamsTopology | None = None
        #: The epoch of the topology for which all topics exist; -1 if some do not.
        self.validated_topology_epoch = 0
        #: The configs that the present epoch was computed with.
        self.assignment_configs: Mapping[str, str] = {}
        self.processes = TaskProcesses()
        # Soft.
        self.configured: ConfiguredTopology | None = None
        self.endpoint_epoch = 0
        #: The member that has asked all members to shut down.
        self.shutdown_member_id: str | None = None

    # Queries.

    @property
    def state_name(self) -> str:
        if not self.members:
            return "Empty"
        if self.topology is None or self.topology.epoch != self.validated_topology_epoch:
            return NOT_READY
        if self.epoch > self.assignment_epoch:
            return "Assigning"
        reconciled = all(each.is_reconciled_to(self.assignment_epoch) for each in self.members.values())
        return "Stable" if reconciled else "Reconciling"

    def is_subscribed_to(self, topic: str) -> bool:
        """An empty group subscribes to nothing, so that its offsets expire."""
        return (
            bool(self.members)
            and self.topology is not None
            and self.topology.subtopology_of(topic) is not None
        )

    # Checks with Kafka's errors, in Kafka's order.

    def check_offset_commit(
        self,
        member_id: str,
        instance_id: str | None,
        generation: int,
        api_version: int,
        *,
        transactional: bool,
    ) -> CheckPartition | None:
        if generation < 0 and not self.members:
            return None
        if transactional and generation == -1 and not member_id and instance_id is None:
            return None
        member = self.member(member_id)
        return check_commit(member, self.topology, generation, api_version, transactional)

    def check_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        if member_id is None and member_epoch < 0:
            return
        check_fetch(self.member(member_id or ""), member_epoch)

    def check_offset_delete(self) -> None:
        """Allow it; topics that the members read are refused one by one."""

    def offset_expiration(self) -> BaseTimestamp | None:
        return lambda committed: committed.commit_timestamp_ms

    # Changes.

    def new_member(self, member_id: str) -> StreamsMember:
        return StreamsMember(member_id)

    def update_member(self, member: StreamsMember) -> None:
        self.processes.update(self.members.get(member.member_id), member)
        self.members[member.member_id] = member

    def remove_member(self, member_id: str) -> None:
        self.processes.update(self.members.pop(member_id, None), None)
        if not self.members:
            self.shutdown_member_id = None

    def set_target(self, member_id: str, target: Tasks | None) -> None:
        self.targets.pop(member_id, None)
        if target is not None:
            self.targets[member_id] = target

    def set_epoch(self, value: Any) -> None:
        super().set_epoch(value)
        self.validated_topology_epoch = value.validated_topology_epoch
        self.assignment_configs = {each.key: each.value for each in value.last_assignment_configs or ()}

    def set_topology(self, topology: StreamsTopology | None) -> None:
        self.topology = topology
        names = frozenset() if topology is None else topology.required_topics
        self.subscriptions = dict.fromkeys(names, SubscriptionCount(by_name=1))

    # Changes of soft state.

    def set_configured(self, configured: ConfiguredTopology) -> None:
        self.configured = configured

    def set_endpoint_epoch(self, epoch: int) -> None:
        self.endpoint_epoch = epoch

    def set_refresh_deadline(self, deadline: RefreshDeadline) -> None:
        self.refresh_deadline = deadline

    # Removal.

    def tombstones(self) -> list[CoordinatorRecord]:
        return group_tombstones(self.group_id, self.members)

    def cancel_timers(self, timers: Timers) -> None:
        timers.cancel(initial_rebalance_key(self.group_id))
        for member_id in self.members:
            timers.cancel(session_timeout_key(self.group_id, member_id))
            timers.cancel(rebalance_timeout_key(self.group_id, member_id))
