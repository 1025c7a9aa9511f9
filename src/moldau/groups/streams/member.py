"""A member of a streams group: the process it runs in, its epoch and its tasks.

Members are immutable; a request makes a new one, which replaces the old one when its records are replayed.
Several members may belong to one process, which shares a state directory: a task has at most one role there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import NamedTuple

from moldau.groups.streams.tasks import NONE_ASSIGNED, AssignedTasks, TaskEpochs, task_set
from moldau.protocol.stored.streams_groups import (
    CurrentTaskIds,
    StreamsGroupCurrentMemberAssignmentValue,
    StreamsGroupMemberMetadataValue,
)

LEAVE_GROUP_EPOCH = -1
LEAVE_GROUP_STATIC_EPOCH = -2


class MemberState(IntEnum):
    STABLE = 1
    #: The member must revoke tasks before it advances to the next epoch.
    UNREVOKED_TASKS = 2
    #: The member waits for tasks that other members have not revoked yet.
    UNRELEASED_TASKS = 3
    #: A state of a newer release.
    UNKNOWN = 127


class UserEndpoint(NamedTuple):
    """The address at which an application serves queries of its state (`application.server`)."""

    host: str
    port: int


@dataclass(frozen=True, slots=True)
class StreamsMember:
    member_id: str
    member_epoch: int = 0
    previous_member_epoch: int = 0
    state: MemberState = MemberState.STABLE
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    topology_epoch: int = -1
    process_id: str = ""
    user_endpoint: UserEndpoint | None = None
    client_tags: Mapping[str, str] = field(default_factory=dict)
    assigned: AssignedTasks = NONE_ASSIGNED
    pending_revocation: AssignedTasks = NONE_ASSIGNED

    def is_reconciled_to(self, epoch: int) -> bool:
        return self.state is MemberState.STABLE and self.member_epoch == epoch

    def moved_to(
        self, epoch: int, state: MemberState, assigned: AssignedTasks, pending_revocation: AssignedTasks
    ) -> StreamsMember:
        return replace(
            self,
            member_epoch=epoch,
            previous_member_epoch=self.member_epoch,
            state=state,
            assigned=assigned,
            pending_revocation=pending_revocation,
        )

    def with_subscription(self, value: StreamsGroupMemberMetadataValue) -> StreamsMember:
        """Apply a StreamsGroupMemberMetadata record."""
        endpoint = value.user_endpoint
        return replace(
            self,
            instance_id=value.instance_id,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            rebalance_timeout_ms=value.rebalance_timeout_ms,
            topology_epoch=value.topology_epoch,
            process_id=value.process_id,
            user_endpoint=None if endpoint is None else UserEndpoint(endpoint.host, endpoint.port),
            client_tags={each.key: each.value for each in value.client_tags},
        )

    def with_assignment(self, value: StreamsGroupCurrentMemberAssignmentValue) -> StreamsMember:
        """Apply a StreamsGroupCurrentMemberAssignment record."""
        known = value.state in MemberState.__members__.values()
        return replace(
            self,
            member_epoch=value.member_epoch,
            previous_member_epoch=value.previous_member_epoch,
            state=MemberState(value.state) if known else MemberState.UNKNOWN,
            assigned=AssignedTasks(
                _with_epochs(value.active_tasks, value.member_epoch),
                task_set(value.standby_tasks),
                task_set(value.warmup_tasks),
            ),
            pending_revocation=AssignedTasks(
                _with_epochs(value.active_tasks_pending_revocation, value.member_epoch),
                task_set(value.standby_tasks_pending_revocation),
                task_set(value.warmup_tasks_pending_revocation),
            ),
        )

    def without_assignment(self) -> StreamsMember:
        """Apply the tombstone of the current assignment."""
        return replace(
            self,
            member_epoch=LEAVE_GROUP_EPOCH,
            previous_member_epoch=LEAVE_GROUP_EPOCH,
            assigned=NONE_ASSIGNED,
            pending_revocation=NONE_ASSIGNED,
        )


def _with_epochs(stored: Iterable[CurrentTaskIds], member_epoch: int) -> TaskEpochs:
    """Decode active tasks; releases before 4.3 stored no assignment epochs, so the member epoch counts."""
    found: dict[str, Mapping[int, int]] = {}
    for each in stored:
        epochs = each.assignment_epochs
        if not each.partitions:
            continue
        if epochs is None or len(epochs) != len(each.partitions):
            found[each.subtopology_id] = dict.fromkeys(each.partitions, member_epoch)
        else:
            found[each.subtopology_id] = dict(zip(each.partitions, epochs, strict=True))
    return found
