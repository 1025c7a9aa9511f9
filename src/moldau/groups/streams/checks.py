"""The validation of StreamsGroupHeartbeat requests, with Kafka's errors in Kafka's order.

As in Kafka 4.3, static membership, task offsets, warm-up tasks and source topics by regular expression are
part of the protocol but refused.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from moldau.base.errors import ErrorCode, KafkaError
from moldau.groups.streams.configured_topology import ConfiguredTopology
from moldau.groups.streams.group import StreamsGroup
from moldau.groups.streams.member import LEAVE_GROUP_STATIC_EPOCH, StreamsMember
from moldau.groups.streams.tasks import Tasks
from moldau.groups.streams.topology import invalid_topology
from moldau.protocol.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    TaskIds,
    Topology,
)


def check_request(request: StreamsGroupHeartbeatRequest) -> None:
    """Validate a request without looking at the group."""
    _check_features(request)
    for name, value in (
        ("MemberId", request.member_id),
        ("GroupId", request.group_id),
        ("InstanceId", request.instance_id),
        ("RackId", request.rack_id),
    ):
        _refuse(value is not None and not value.strip(), f"{name} can't be empty.")
    epoch = request.member_epoch
    if epoch == 0:
        _check_join(request)
    elif epoch == LEAVE_GROUP_STATIC_EPOCH:
        _refuse(request.instance_id is None, "InstanceId can't be null.")
    else:
        _refuse(
            epoch < LEAVE_GROUP_STATIC_EPOCH,
            f"MemberEpoch is {epoch}, but must be greater than or equal to -2.",
        )
    tasks = (request.active_tasks, request.standby_tasks, request.warmup_tasks)
    _refuse(
        any(each is None for each in tasks) and any(each is not None for each in tasks),
        "If one task-type is non-null, all must be non-null.",
    )
    _refuse(epoch != 0 and request.topology is not None, "Topology can only be provided when (re-)joining.")


def _check_features(request: StreamsGroupHeartbeatRequest) -> None:
    _refuse(request.instance_id is not None, "Static membership is not yet supported.")
    _refuse(request.task_offsets is not None, "TaskOffsets are not supported yet.")
    _refuse(request.task_end_offsets is not None, "TaskEndOffsets are not supported yet.")
    _refuse(bool(request.warmup_tasks), "WarmupTasks are not supported yet.")
    if request.topology is not None:
        regexes = any(each.source_topic_regex for each in request.topology.subtopologies)
        _refuse(regexes, "Regular expressions for source topics are not supported yet.")


def _check_join(request: StreamsGroupHeartbeatRequest) -> None:
    _refuse(request.rebalance_timeout_ms == -1, "RebalanceTimeoutMs must be provided in first request.")
    _refuse_tasks(request.active_tasks, "ActiveTasks")
    _refuse_tasks(request.standby_tasks, "StandbyTasks")
    _refuse_tasks(request.warmup_tasks, "WarmupTasks")
    if request.topology is None:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Topology must be non-null when (re-)joining.")
    _check_changelogs(request.topology)


def _refuse_tasks(tasks: Collection[TaskIds] | None, name: str) -> None:
    _refuse(tasks is None or len(tasks) > 0, f"{name} must be empty when (re-)joining.")


def _check_changelogs(topology: Topology) -> None:
    for subtopology in topology.subtopologies:
        for topic in subtopology.state_changelog_topics:
            if topic.partitions != 0:
                raise invalid_topology(
                    f"Changelog topic {topic.name} must have an undefined partition count, but it is set to "
                    f"{topic.partitions}."
                )


def _refuse(wrong: bool, message: str) -> None:
    if wrong:
        raise KafkaError(ErrorCode.INVALID_REQUEST, message)


def check_size(group: StreamsGroup, max_size: int) -> None:
    """Refuse a joining member, also one that rejoins, if the group is full."""
    if len(group.members) >= max_size:
        raise KafkaError(
            ErrorCode.GROUP_MAX_SIZE_REACHED,
            f"The streams group has reached its maximum capacity of {max_size} members.",
        )


def check_epoch(member: StreamsMember, epoch: int, owned: Tasks | None) -> None:
    """Accept the current epoch, or the previous one if the member owns only assigned tasks."""
    if epoch in (0, member.member_epoch):
        return
    is_previous = epoch == member.previous_member_epoch and epoch < member.member_epoch
    if is_previous and owned is not None and member.assigned.contains(owned):
        return
    relation = "greater" if epoch > member.member_epoch else "smaller"
    raise KafkaError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The streams group member has a {relation} member epoch ({epoch}) than the one known by the group "
        f"coordinator ({member.member_epoch}). The member must abandon all its partitions and rejoin.",
    )


def check_tasks(request: StreamsGroupHeartbeatRequest, configured: ConfiguredTopology) -> None:
    """Check that the reported tasks exist in a topology that is ready."""
    reported: Iterable[list[Any] | None] = (
        request.active_tasks,
        request.standby_tasks,
        request.warmup_tasks,
    )
    subtopologies = configured.subtopologies or {}
    for each in (task for tasks in reported for task in tasks or ()):
        known = subtopologies.get(each.subtopology_id)
        if known is None:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"Subtopology {each.subtopology_id} does not exist in the topology.",
            )
        for partition in each.partitions:
            _refuse(
                not 0 <= partition < known.tasks,
                f"Task {partition} for subtopology {each.subtopology_id} is invalid. Number of tasks for "
                f"this subtopology: {known.tasks}",
            )
