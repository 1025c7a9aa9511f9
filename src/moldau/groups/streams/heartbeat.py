"""StreamsGroupHeartbeat (KIP-1071): joining, reporting owned tasks, assignment and leaving.

A member joins with epoch 0 and the topology of its application, and leaves with -1. The response carries the
assignment if it is new, or if the member reports other tasks: it may have lost a response. The decision names
the internal topics that are missing; the handler creates them on behalf of the client.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from moldau.base.errors import ErrorCode, KafkaError
from moldau.groups.classic.group import ClassicGroup
from moldau.groups.context import Requester
from moldau.groups.streams.checks import check_epoch, check_size
from moldau.groups.streams.configured_topology import ConfiguredTopology
from moldau.groups.streams.context import StreamsContext
from moldau.groups.streams.endpoints import partitions_by_endpoint
from moldau.groups.streams.group import StreamsGroup
from moldau.groups.streams.group_update import GroupUpdate
from moldau.groups.streams.member import (
    LEAVE_GROUP_EPOCH,
    LEAVE_GROUP_STATIC_EPOCH,
    StreamsMember,
    UserEndpoint,
)
from moldau.groups.streams.records import epoch_record, member_tombstones
from moldau.groups.streams.statuses import StatusCode, status
from moldau.groups.streams.target import target_assignment
from moldau.groups.streams.tasks import Tasks, task_ids, task_set
from moldau.protocol.messages.create_topics import CreatableTopic
from moldau.protocol.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    TaskIds,
)
from moldau.statemachine.coordinator_records import Entry
from moldau.statemachine.decision import Decision

logger = logging.getLogger(__name__)


class StreamsHeartbeat(NamedTuple):
    response: StreamsGroupHeartbeatResponse
    #: The missing internal topics by name.
    missing_topics: Mapping[str, CreatableTopic]


class StreamsHeartbeats:
    def __init__(self, context: StreamsContext) -> None:
        self._context = context

    def heartbeat(
        self, requester: Requester, request: StreamsGroupHeartbeatRequest
    ) -> Decision[Entry, StreamsHeartbeat]:
        """Serve a request that has passed `check_request`."""
        if request.member_epoch in (LEAVE_GROUP_EPOCH, LEAVE_GROUP_STATIC_EPOCH):
            return self._leave(request)
        update = self._update(request)
        member = _member(update.group, request)
        owned = _owned(request)
        check_epoch(member, request.member_epoch, owned)
        updated = _updated(member, requester, request)
        update.update_member(member, updated)
        topology = update.update_topology(request.topology, updated)
        configured = update.update_metadata(topology, request)
        target = update.update_target(updated, configured)
        reconciled = update.reconcile(updated, target, owned)
        group_id, member_id = request.group_id, request.member_id
        update.once_appended(lambda: self._context.restart_session(group_id, member_id))
        sends_assignment = (
            request.member_epoch == 0
            or member.assigned != reconciled.assigned
            or (owned is not None and owned != reconciled.assigned.without_epochs())
        )
        response = self._response(update, request, reconciled, configured, sends_assignment)
        return update.build(StreamsHeartbeat(response, configured.missing))

    def _update(self, request: StreamsGroupHeartbeatRequest) -> GroupUpdate:
        """Start the update of a group; a joining member may create it, also from an empty classic group."""
        group_id, joins = request.group_id, request.member_epoch == 0
        group = self._context.registry.find(group_id)
        if group is None and not joins:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Streams group {group_id} not found.")
        if joins and (group is None or (isinstance(group, ClassicGroup) and group.is_empty)):
            update = GroupUpdate(self._context, StreamsGroup(group_id))
            if group is not None:
                self._replace(update, group)
        else:
            update = GroupUpdate(
                self._context, self._context.registry.get_as(StreamsGroup, group_id, "streams")
            )
        if joins:
            check_size(update.group, self._context.group_context.settings().streams_max_size)
        return update

    def _replace(self, update: GroupUpdate, classic: ClassicGroup) -> None:
        update.records += classic.tombstones()
        update.once_appended(lambda: classic.cancel_timers(self._context.group_context.timers))
        logger.info("converting the empty classic group %s to a streams group", classic.group_id)

    # The response.

    def _response(
        self,
        update: GroupUpdate,
        request: StreamsGroupHeartbeatRequest,
        updated: StreamsMember,
        configured: ConfiguredTopology,
        sends_assignment: bool,
    ) -> StreamsGroupHeartbeatResponse:
        """Include the endpoints if they changed since the epoch that the member knows."""
        group = update.group
        response = StreamsGroupHeartbeatResponse(
            member_id=updated.member_id,
            member_epoch=updated.member_epoch,
            heartbeat_interval_ms=self._context.heartbeat_interval_ms(group.group_id),
        )
        endpoint_epoch = group.endpoint_epoch
        if sends_assignment:
            response.active_tasks = task_ids(TaskIds, updated.assigned.active)
            response.standby_tasks = task_ids(TaskIds, updated.assigned.standby)
            response.warmup_tasks = task_ids(TaskIds, updated.assigned.warmup)
            if updated.user_endpoint is not None:
                endpoint_epoch += 1
        if endpoint_epoch != request.endpoint_information_epoch:
            response.partitions_by_user_endpoint = partitions_by_endpoint(
                group, updated, configured, self._context.group_context.image
            )
        if group.group_id in self._context.registry:
            # The epoch of a new group starts at 0 once the group is registered.
            response.endpoint_information_epoch = endpoint_epoch
            update.change_group(lambda changed: changed.set_endpoint_epoch(endpoint_epoch))
        if configured.problem is not None:
            update.statuses.append(configured.problem)
        self._add_shutdown(update, request, updated.member_id)
        response.status = update.statuses
        return response

    def _add_shutdown(
        self, update: GroupUpdate, request: StreamsGroupHeartbeatRequest, member_id: str
    ) -> None:
        requested_by = update.group.shutdown_member_id
        if requested_by is None and request.shutdown_application:
            requested_by = member_id
            update.change_group(lambda group: _request_shutdown(group, member_id))
        if requested_by is not None:
            update.statuses.append(
                status(
                    StatusCode.SHUTDOWN_APPLICATION,
                    f"Streams group member {requested_by} encountered a fatal error and requested a shutdown "
                    "for the entire application.",
                )
            )

    # The first assignment.

    def assign(self, group_id: str) -> Decision[Entry, Any]:
        """Compute the target assignment of a group that has waited for its first members."""
        group = self._context.registry.find_as(StreamsGroup, group_id)
        if group is None or group.is_empty or group.configured is None:
            return Decision([], None)
        if group.epoch <= group.assignment_epoch:
            return Decision([], None)
        now_ms = self._context.group_context.clock.time_ms()
        records, _ = target_assignment(
            group, group.configured, None, group.epoch, group.assignment_configs, now_ms
        )
        logger.info("group %s has its first target, for epoch %d", group_id, group.epoch)
        return Decision(records, None)

    # Removing members.

    def _leave(self, request: StreamsGroupHeartbeatRequest) -> Decision[Entry, StreamsHeartbeat]:
        group = self._context.registry.get_as(StreamsGroup, request.group_id, "streams")
        member = group.member(request.member_id)
        logger.info("%s leaves group %s", member.member_id, group.group_id)
        response = StreamsGroupHeartbeatResponse(
            member_id=request.member_id, member_epoch=request.member_epoch, status=[]
        )
        shutdown_by = member.member_id if request.shutdown_application else None
        return self._remove(group, member, StreamsHeartbeat(response, {}), shutdown_by)

    def fence(self, group_id: str, member_id: str, reason: str, epoch: int | None) -> Decision[Entry, Any]:
        """Remove a member, unless it has left `epoch` meanwhile."""
        group = self._context.registry.find_as(StreamsGroup, group_id)
        member = None if group is None else group.members.get(member_id)
        if group is None or member is None or epoch not in (None, member.member_epoch):
            return Decision([], None)
        logger.info("fencing %s from group %s: %s", member_id, group_id, reason)
        return self._remove(group, member, None)

    def _remove(
        self, group: StreamsGroup, member: StreamsMember, response: Any, shutdown_by: str | None = None
    ) -> Decision[Entry, Any]:
        group_id = group.group_id
        records = member_tombstones(group_id, member.member_id)
        records.append(
            epoch_record(
                group_id,
                group.epoch + 1,
                group.metadata_hash,
                group.validated_topology_epoch,
                group.assignment_configs,
            )
        )

        def apply() -> None:
            self._context.cancel_member_timers(group_id, member.member_id)
            if shutdown_by is not None and group.members:
                _request_shutdown(group, shutdown_by)

        return Decision(records, response, apply)


def _request_shutdown(group: StreamsGroup, member_id: str) -> None:
    if group.shutdown_member_id is None:
        logger.info("%s requests the shutdown of group %s", member_id, group.group_id)
        group.shutdown_member_id = member_id


def _member(group: StreamsGroup, request: StreamsGroupHeartbeatRequest) -> StreamsMember:
    known = group.members.get(request.member_id)
    if known is not None or request.member_epoch != 0:
        return group.member(request.member_id)
    return StreamsMember(request.member_id)


def _updated(
    member: StreamsMember, requester: Requester, request: StreamsGroupHeartbeatRequest
) -> StreamsMember:
    """Apply the fields of a request; those that are null or -1 stay unchanged."""
    fields: dict[str, Any] = {"client_id": requester.client_id, "client_host": requester.client_host}
    if request.rack_id is not None:
        fields["rack_id"] = request.rack_id
    if request.rebalance_timeout_ms != -1:
        fields["rebalance_timeout_ms"] = request.rebalance_timeout_ms
    if request.topology is not None:
        fields["topology_epoch"] = request.topology.epoch
    if request.process_id is not None:
        fields["process_id"] = request.process_id
    if request.user_endpoint is not None:
        fields["user_endpoint"] = UserEndpoint(request.user_endpoint.host, request.user_endpoint.port)
    if request.client_tags is not None:
        fields["client_tags"] = {each.key: each.value for each in request.client_tags}
    return replace(member, **fields)


def _owned(request: StreamsGroupHeartbeatRequest) -> Tasks | None:
    active, standby, warmup = request.active_tasks, request.standby_tasks, request.warmup_tasks
    if active is None or standby is None or warmup is None:
        return None
    return Tasks(task_set(active), task_set(standby), task_set(warmup))
