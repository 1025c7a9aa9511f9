"""StreamsGroupDescribe: topology, members and assignments of streams groups."""

from __future__ import annotations

from moldau.groups.assignors.java_order import string_order
from moldau.groups.streams.group import StreamsGroup
from moldau.groups.streams.member import StreamsMember
from moldau.groups.streams.tasks import NO_TASKS, AssignedTasks, Tasks, task_ids
from moldau.protocol.messages.streams_group_describe import (
    Assignment,
    DescribedGroup,
    Endpoint,
    KeyValue,
    Member,
    TaskIds,
    Topology,
)


def described_group(group: StreamsGroup) -> DescribedGroup:
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.state_name,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        topology=_topology(group),
        members=[_member(group, each) for each in group.members.values()],
    )


def _topology(group: StreamsGroup) -> Topology | None:
    """Describe the topology with its partition counts, if they are known."""
    if group.configured is not None and group.configured.is_ready:
        return group.configured.described()
    return None if group.topology is None else group.topology.described()


def _member(group: StreamsGroup, member: StreamsMember) -> Member:
    endpoint = member.user_endpoint
    return Member(
        member_id=member.member_id,
        member_epoch=member.member_epoch,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        topology_epoch=member.topology_epoch,
        process_id=member.process_id,
        user_endpoint=None if endpoint is None else Endpoint(host=endpoint.host, port=endpoint.port),
        client_tags=[
            KeyValue(key=key, value=member.client_tags[key])
            for key in sorted(member.client_tags, key=string_order)
        ],
        assignment=_assignment(member.assigned),
        target_assignment=_assignment(group.targets.get(member.member_id, NO_TASKS)),
    )


def _assignment(tasks: Tasks | AssignedTasks) -> Assignment:
    return Assignment(
        active_tasks=task_ids(TaskIds, tasks.active),
        standby_tasks=task_ids(TaskIds, tasks.standby),
        warmup_tasks=task_ids(TaskIds, tasks.warmup),
    )
