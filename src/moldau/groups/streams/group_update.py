"""The update of a streams group by one heartbeat: a decision, built step by step.

The steps: store the member and a first topology; derive the tasks and internal topics if the topology or the
metadata is new; bump the group epoch if any of these or the assignor's configs changed; compute a target
assignment for a new epoch; reconcile the member with it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from moldau.base.errors import ErrorCode, KafkaError
from moldau.groups.modern.group import RefreshDeadline
from moldau.groups.streams.checks import check_tasks
from moldau.groups.streams.configured_topology import ConfiguredTopology, configure
from moldau.groups.streams.context import StreamsContext
from moldau.groups.streams.group import StreamsGroup
from moldau.groups.streams.member import MemberState, StreamsMember
from moldau.groups.streams.reconciliation import Reconciliation
from moldau.groups.streams.records import current_record, epoch_record, member_record, topology_record
from moldau.groups.streams.statuses import StatusCode, status
from moldau.groups.streams.target import target_assignment
from moldau.groups.streams.tasks import NO_TASKS, Tasks
from moldau.groups.streams.topology import StreamsTopology, topology_value
from moldau.protocol.messages.streams_group_heartbeat import (
    Status,
    StreamsGroupHeartbeatRequest,
    Topology,
)
from moldau.statemachine.coordinator_records import Entry
from moldau.statemachine.decision import DecisionBuilder

logger = logging.getLogger(__name__)

#: Unchanged topics are checked again after this time; a metadata change triggers the check earlier.
_METADATA_REFRESH_INTERVAL_MS = 2**31 - 1


class GroupUpdate(DecisionBuilder[Entry]):
    def __init__(self, context: StreamsContext, group: StreamsGroup) -> None:
        super().__init__()
        self._context = context
        self._image = context.group_context.image
        self._now_ms = context.group_context.clock.time_ms()
        self.group = group
        self.epoch = group.epoch
        self.statuses: list[Status] = []
        #: The configs of the assignor that apply now.
        self._configs = context.assignment_configs(group.group_id)
        self._bump = False

    def change_group(self, change: Callable[[StreamsGroup], None]) -> None:
        """Change soft state of the registered group: replaying the records may have created it."""

        def apply() -> None:
            group = self._context.registry.find_as(StreamsGroup, self.group.group_id)
            if group is not None:
                change(group)

        self.once_appended(apply)

    # The member and the topology.

    def update_member(self, member: StreamsMember, updated: StreamsMember) -> None:
        if updated != member:
            self.records.append(member_record(self.group.group_id, updated))
            self._bump = True

    def update_topology(self, sent: Topology | None, updated: StreamsMember) -> StreamsTopology:
        """Store the topology of the first member; return the topology of the group."""
        known = self.group.topology
        if known is not None and updated.topology_epoch < known.epoch:
            self.statuses.append(
                status(
                    StatusCode.STALE_TOPOLOGY,
                    f"The member's topology epoch {updated.topology_epoch} is behind the group's topology "
                    f"epoch {known.epoch}.",
                )
            )
        if sent is None:
            if known is None:
                raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
            return known
        topology = StreamsTopology.from_request(sent)
        if known is None:
            order = [each.subtopology_id for each in sent.subtopologies]
            self.records.append(topology_record(self.group.group_id, topology_value(topology, order)))
            return topology
        if known.epoch <= topology.epoch and known != topology:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Topology updates are not supported yet.")
        return known

    # The group epoch.

    def update_metadata(
        self, topology: StreamsTopology, request: StreamsGroupHeartbeatRequest
    ) -> ConfiguredTopology:
        """Configure the topology if it or the metadata is new; bump the group epoch if anything changed."""
        group = self.group
        configured, metadata_hash = group.configured, group.metadata_hash
        if configured is None or group.topology is None or self._metadata_expired():
            metadata_hash = self._context.hashes.of_topics(topology.required_topics, self._image)
            changed = metadata_hash != group.metadata_hash
            self._bump = self._bump or changed
            if configured is None or group.topology is None or changed:
                configured = self._configure(topology)
        validated_epoch = -1
        if configured.is_ready:
            validated_epoch = topology.epoch
            check_tasks(request, configured)
        changed_configs = self._configs != group.assignment_configs
        self._bump = self._bump or validated_epoch != group.validated_topology_epoch or changed_configs
        if self._bump:
            self.epoch += 1
            self.records.append(
                epoch_record(group.group_id, self.epoch, metadata_hash, validated_epoch, self._configs)
            )
            logger.info("the epoch of group %s is %d", group.group_id, self.epoch)
        deadline = RefreshDeadline(self._now_ms + _METADATA_REFRESH_INTERVAL_MS, self.epoch)
        self.change_group(lambda changed: changed.set_refresh_deadline(deadline))
        return configured

    def _metadata_expired(self) -> bool:
        deadline = self.group.refresh_deadline
        return self._now_ms >= deadline.time_ms or self.group.epoch < deadline.epoch

    def _configure(self, topology: StreamsTopology) -> ConfiguredTopology:
        configured = configure(topology, self._image)
        if configured.problem is None:
            logger.info("the topology of group %s is ready", self.group.group_id)
        else:
            detail = configured.problem.status_detail
            logger.info("the topology of group %s is not ready: %s", self.group.group_id, detail)
        self.change_group(lambda changed: changed.set_configured(configured))
        return configured

    # The assignment.

    def update_target(self, updated: StreamsMember, configured: ConfiguredTopology) -> tuple[int, Tasks]:
        """Return the epoch and the target of a member, from a new target assignment if one is due."""
        group, context = self.group, self._context
        if self._waits_for_members():
            self._delayed("Assignment delayed due to the configured initial rebalance delay.")
            return group.assignment_epoch, NO_TASKS
        target = group.targets.get(updated.member_id, NO_TASKS)
        if group.assignment_epoch >= self.epoch:
            return group.assignment_epoch, target
        if not group.may_assign(self._now_ms, context.assignment_interval_ms(group.group_id)):
            self._delayed("Assignment delayed due to the configured assignment interval.")
            return group.assignment_epoch, target
        records, targets = target_assignment(
            group, configured, updated, self.epoch, self._configs, self._now_ms
        )
        self.records += records
        logger.info("group %s has a target for epoch %d", group.group_id, self.epoch)
        return self.epoch, targets[updated.member_id]

    def _waits_for_members(self) -> bool:
        group_id = self.group.group_id
        if self._context.delays_assignment(group_id):
            return True
        delay_ms = self._context.initial_rebalance_delay_ms(group_id) if self.group.is_empty else 0
        if delay_ms <= 0:
            return False
        self.once_appended(lambda: self._context.schedule_first_assignment(group_id, delay_ms))
        return True

    def _delayed(self, detail: str) -> None:
        self.statuses.append(status(StatusCode.ASSIGNMENT_DELAYED, detail))

    def reconcile(
        self, member: StreamsMember, target: tuple[int, Tasks], owned: Tasks | None
    ) -> StreamsMember:
        epoch, tasks = target
        if member.is_reconciled_to(epoch):
            return member
        reconciled = Reconciliation(member, epoch, tasks, self.group.processes, owned).next()
        if reconciled == member:
            return member
        group_id, context = self.group.group_id, self._context
        self.records.append(current_record(group_id, reconciled))
        if reconciled.state is MemberState.UNREVOKED_TASKS:
            self.once_appended(lambda: context.schedule_rebalance_timeout(group_id, reconciled))
        else:
            self.once_appended(lambda: context.cancel_rebalance_timeout(group_id, reconciled.member_id))
        return reconciled
