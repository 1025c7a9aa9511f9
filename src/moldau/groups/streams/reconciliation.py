"""The next step of a member towards its target assignment (KIP-1071).

A member revokes first. While it owns tasks that are not in its target, it stays in its epoch. Once it no
longer reports them as owned, it advances to the target epoch and is assigned the tasks that are free: an
active task that no process runs and of which its process has no copy, a standby or warm-up task of which its
process has no role yet. It waits in that epoch for the others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from moldau.base.errors import ErrorCode, KafkaError
from moldau.groups.streams.member import MemberState, StreamsMember
from moldau.groups.streams.process_ids import TaskProcesses
from moldau.groups.streams.tasks import NO_TASKS, NONE_ASSIGNED, AssignedTasks, TaskId, Tasks, TaskSet


@dataclass(frozen=True, slots=True)
class Reconciliation:
    member: StreamsMember
    target_epoch: int
    target: Tasks
    processes: TaskProcesses
    #: The tasks that the client reports to own; None if it does not report them.
    owned: Tasks | None

    def next(self) -> StreamsMember:
        """Return the member after the next step; the same member if there is none."""
        member = self.member
        if member.state is MemberState.STABLE:
            return member if member.member_epoch == self.target_epoch else self._advance(member.member_epoch)
        if member.state is MemberState.UNREVOKED_TASKS:
            if self._still_owns(member.pending_revocation):
                return member
            return self._advance(member.member_epoch + 1)
        if member.state is MemberState.UNKNOWN:
            if self.owned != NO_TASKS:
                raise KafkaError(
                    ErrorCode.FENCED_MEMBER_EPOCH,
                    "The streams group member is in a unknown state. "
                    "The member must abandon all its tasks and rejoin.",
                )
            return self._advance(self.target_epoch)
        return self._advance(member.member_epoch)

    def _still_owns(self, tasks: AssignedTasks) -> bool:
        return self.owned is None or tasks.overlaps(self.owned)

    def _advance(self, epoch: int) -> StreamsMember:
        """Revoke what is not in the target; else move to the target epoch. `epoch` applies while revoking."""
        current, target = self.member.assigned, self.target
        kept = AssignedTasks(
            _common_epochs(current.active, target.active),
            _common(current.standby, target.standby),
            _common(current.warmup, target.warmup),
        )
        revoked = AssignedTasks(
            {
                key: {each: since for each, since in found.items() if each not in kept.active.get(key, {})}
                for key, found in current.active.items()
                if len(found) > len(kept.active.get(key, {}))
            },
            _without(current.standby, kept.standby),
            _without(current.warmup, kept.warmup),
        )
        if not revoked.is_empty and self._still_owns(revoked):
            return self.member.moved_to(epoch, MemberState.UNREVOKED_TASKS, kept, revoked)
        waits, added = self._free(kept)
        state = MemberState.UNRELEASED_TASKS if waits else MemberState.STABLE
        return self.member.moved_to(self.target_epoch, state, kept.with_added(added), NONE_ASSIGNED)

    def _free(self, kept: AssignedTasks) -> tuple[bool, AssignedTasks]:
        """Return whether target tasks are taken, and those that can be assigned now."""
        process_id, processes = self.member.process_id, self.processes

        def active_is_free(task: TaskId) -> bool:
            return not processes.is_active(task) and not processes.has_copy(task, process_id)

        def copy_is_free(task: TaskId) -> bool:
            return not processes.runs(task, process_id) and not processes.has_copy(task, process_id)

        waits_active, active = _added(self.target.active, kept.active, active_is_free)
        waits_standby, standby = _added(self.target.standby, kept.standby, copy_is_free)
        waits_warmup, warmup = _added(self.target.warmup, kept.warmup, copy_is_free)
        epochs = {key: dict.fromkeys(found, self.target_epoch) for key, found in active.items()}
        return waits_active or waits_standby or waits_warmup, AssignedTasks(epochs, standby, warmup)


def _common_epochs(current: Mapping[str, Mapping[int, int]], target: TaskSet) -> dict[str, Mapping[int, int]]:
    found = {
        key: {each: since for each, since in epochs.items() if each in target.get(key, ())}
        for key, epochs in current.items()
    }
    return {key: epochs for key, epochs in found.items() if epochs}


def _common(current: TaskSet, target: TaskSet) -> dict[str, tuple[int, ...]]:
    found = {
        key: tuple(each for each in partitions if each in target.get(key, ()))
        for key, partitions in current.items()
    }
    return {key: partitions for key, partitions in found.items() if partitions}


def _without(current: TaskSet, kept: TaskSet) -> dict[str, tuple[int, ...]]:
    found = {
        key: tuple(each for each in partitions if each not in kept.get(key, ()))
        for key, partitions in current.items()
    }
    return {key: partitions for key, partitions in found.items() if partitions}


def _added(
    target: TaskSet,
    kept: Mapping[str, Mapping[int, int] | tuple[int, ...]],
    is_free: Callable[[TaskId], bool],
) -> tuple[bool, dict[str, tuple[int, ...]]]:
    waits, added = False, {}
    for key, partitions in target.items():
        wanted = [each for each in partitions if each not in kept.get(key, ())]
        free = tuple(each for each in wanted if is_free(TaskId(key, each)))
        waits = waits or len(free) < len(wanted)
        if free:
            added[key] = free
    return waits, added
