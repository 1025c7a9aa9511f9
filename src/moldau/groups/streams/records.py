"""The records of a streams group. A key without value (a tombstone) removes what the key identifies."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from moldau.groups.assignors.java_order import string_order
from moldau.groups.streams.member import StreamsMember
from moldau.groups.streams.tasks import TaskEpochs, Tasks, task_ids
from moldau.protocol.schema import Message
from moldau.protocol.stored.streams_groups import (
    CurrentTaskIds,
    Endpoint,
    KeyValue,
    LastAssignmentConfig,
    StreamsGroupCurrentMemberAssignmentKey,
    StreamsGroupCurrentMemberAssignmentValue,
    StreamsGroupMemberMetadataKey,
    StreamsGroupMemberMetadataValue,
    StreamsGroupMetadataKey,
    StreamsGroupMetadataValue,
    StreamsGroupTargetAssignmentMemberKey,
    StreamsGroupTargetAssignmentMemberValue,
    StreamsGroupTargetAssignmentMetadataKey,
    StreamsGroupTargetAssignmentMetadataValue,
    StreamsGroupTopologyKey,
    StreamsGroupTopologyValue,
    TargetTaskIds,
)
from moldau.statemachine.coordinator_records import CoordinatorRecord


def member_record(group_id: str, member: StreamsMember) -> CoordinatorRecord:
    endpoint = member.user_endpoint
    value = StreamsGroupMemberMetadataValue(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        topology_epoch=member.topology_epoch,
        process_id=member.process_id,
        user_endpoint=None if endpoint is None else Endpoint(host=endpoint.host, port=endpoint.port),
        client_tags=[
            KeyValue(key=key, value=member.client_tags[key])
            for key in sorted(member.client_tags, key=string_order)
        ],
    )
    key = StreamsGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id)
    return CoordinatorRecord(key, value)


def epoch_record(
    group_id: str, epoch: int, metadata_hash: int, topology_epoch: int, configs: Mapping[str, str]
) -> CoordinatorRecord:
    """Store a group epoch; `topology_epoch` is the topology that was ready in it, or -1."""
    value = StreamsGroupMetadataValue(
        epoch=epoch,
        metadata_hash=metadata_hash,
        validated_topology_epoch=topology_epoch,
        last_assignment_configs=[
            LastAssignmentConfig(key=key, value=configs[key]) for key in sorted(configs, key=string_order)
        ],
    )
    return CoordinatorRecord(StreamsGroupMetadataKey(group_id=group_id), value)


def topology_record(group_id: str, value: StreamsGroupTopologyValue) -> CoordinatorRecord:
    return CoordinatorRecord(StreamsGroupTopologyKey(group_id=group_id), value)


def target_record(group_id: str, member_id: str, target: Tasks) -> CoordinatorRecord:
    value = StreamsGroupTargetAssignmentMemberValue(
        active_tasks=task_ids(TargetTaskIds, target.active),
        standby_tasks=task_ids(TargetTaskIds, target.standby),
        warmup_tasks=task_ids(TargetTaskIds, target.warmup),
    )
    key = StreamsGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id)
    return CoordinatorRecord(key, value)


def target_epoch_record(group_id: str, epoch: int, timestamp_ms: int) -> CoordinatorRecord:
    value = StreamsGroupTargetAssignmentMetadataValue(
        assignment_epoch=epoch, assignment_timestamp=timestamp_ms
    )
    return CoordinatorRecord(StreamsGroupTargetAssignmentMetadataKey(group_id=group_id), value)


def current_record(group_id: str, member: StreamsMember) -> CoordinatorRecord:
    assigned, revoked = member.assigned, member.pending_revocation
    value = StreamsGroupCurrentMemberAssignmentValue(
        member_epoch=member.member_epoch,
        previous_member_epoch=member.previous_member_epoch,
        state=int(member.state),
        active_tasks=_with_epochs(assigned.active),
        standby_tasks=task_ids(CurrentTaskIds, assigned.standby),
        warmup_tasks=task_ids(CurrentTaskIds, assigned.warmup),
        active_tasks_pending_revocation=_with_epochs(revoked.active),
        standby_tasks_pending_revocation=task_ids(CurrentTaskIds, revoked.standby),
        warmup_tasks_pending_revocation=task_ids(CurrentTaskIds, revoked.warmup),
    )
    key = StreamsGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id)
    return CoordinatorRecord(key, value)


def _with_epochs(tasks: TaskEpochs) -> list[CurrentTaskIds]:
    found = task_ids(CurrentTaskIds, tasks)
    for each in found:
        epochs = tasks[each.subtopology_id]
        each.assignment_epochs = [epochs[partition] for partition in each.partitions]
    return found


def member_tombstones(group_id: str, member_id: str) -> list[CoordinatorRecord]:
    names = {"group_id": group_id, "member_id": member_id}
    return [
        _tombstone(StreamsGroupCurrentMemberAssignmentKey(**names)),
        _tombstone(StreamsGroupTargetAssignmentMemberKey(**names)),
        _tombstone(StreamsGroupMemberMetadataKey(**names)),
    ]


def group_tombstones(group_id: str, member_ids: Collection[str]) -> list[CoordinatorRecord]:
    """Remove all records of a group, in an order that can be replayed."""
    names = [{"group_id": group_id, "member_id": member_id} for member_id in member_ids]
    return [
        *(_tombstone(StreamsGroupCurrentMemberAssignmentKey(**each)) for each in names),
        *(_tombstone(StreamsGroupTargetAssignmentMemberKey(**each)) for each in names),
        _tombstone(StreamsGroupTargetAssignmentMetadataKey(group_id=group_id)),
        *(_tombstone(StreamsGroupMemberMetadataKey(**each)) for each in names),
        _tombstone(StreamsGroupMetadataKey(group_id=group_id)),
        _tombstone(StreamsGroupTopologyKey(group_id=group_id)),
    ]


def _tombstone(key: Message) -> CoordinatorRecord:
    return CoordinatorRecord(key, None)
