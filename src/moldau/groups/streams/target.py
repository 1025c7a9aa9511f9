"""The target assignment of a streams group: the tasks that each member should have."""

from __future__ import annotations

from collections.abc import Mapping

from moldau.base.errors import ErrorCode, KafkaError
from moldau.groups.streams.assignors import sticky
from moldau.groups.streams.configured_topology import ConfiguredTopology
from moldau.groups.streams.group import StreamsGroup
from moldau.groups.streams.member import StreamsMember
from moldau.groups.streams.records import target_epoch_record, target_record
from moldau.groups.streams.tasks import NO_TASKS, Tasks
from moldau.statemachine.coordinator_records import CoordinatorRecord


def target_assignment(
    group: StreamsGroup,
    configured: ConfiguredTopology,
    updated: StreamsMember | None,
    epoch: int,
    configs: Mapping[str, str],
    now_ms: int,
) -> tuple[list[CoordinatorRecord], dict[str, Tasks]]:
    """Assign the tasks of a group in which one member may have joined or changed; none until it is ready."""
    members = dict(group.members)
    if updated is not None:
        members[updated.member_id] = updated
    specs = {
        member_id: sticky.MemberSpec(member.process_id, group.targets.get(member_id, NO_TASKS))
        for member_id, member in members.items()
    }
    targets = dict.fromkeys(specs, NO_TASKS)
    if configured.is_ready:
        subtopologies = {
            subtopology_id: sticky.SubtopologySpec(each.tasks, each.is_stateful)
            for subtopology_id, each in (configured.subtopologies or {}).items()
        }
        try:
            replicas = int(configs.get("num.standby.replicas", "0"))
            targets = sticky.assign(specs, subtopologies, replicas)
        except KafkaError as error:
            raise KafkaError(
                ErrorCode.UNKNOWN_SERVER_ERROR,
                f"Failed to compute a new target assignment for epoch {epoch}: {error.message}",
            ) from error
    records = [
        target_record(group.group_id, member_id, target)
        for member_id, target in targets.items()
        if group.targets.get(member_id) != target
    ]
    records.append(target_epoch_record(group.group_id, epoch, now_ms))
    return records, targets
