"""The sticky task assignor: tasks stay where their state is, and members get equally many (KIP-1071).

Active tasks go to the member that ran them, else to one that kept a copy of their state, as long as neither
has more than its share; the others go to the least loaded process. Standby tasks follow the same order. A
process has at most one role for a task, so with fewer processes than copies some copies are not assigned.

Members, processes and ties are visited in the order of Kafka's Java collections, so that a group that moves
between the two brokers keeps its assignment.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from moldau.base.errors import ErrorCode, KafkaError
from moldau.groups.assignors.java_order import string_order, strings_in_hash_order
from moldau.groups.streams.assignors.process_state import JavaPriorityQueue, ProcessState, table_order
from moldau.groups.streams.tasks import NO_TASKS, TaskId, Tasks, TaskSet, each_task

logger = logging.getLogger(__name__)

NAME = "sticky"


class MemberSpec(NamedTuple):
    process_id: str
    #: The member's present target.
    tasks: Tasks = NO_TASKS


class SubtopologySpec(NamedTuple):
    tasks: int
    is_stateful: bool


class _Member(NamedTuple):
    process_id: str
    member_id: str


class _Quota:
    """The maximum number of tasks of a member while others have fewer.

    When a member reaches its quota, the rest is divided among the remaining members.
    """

    def __init__(self, tasks: int, members: int) -> None:
        self._tasks = tasks
        self._members = members
        self.per_member = _share(tasks, members)

    def reached(self, count: int) -> None:
        if count == self.per_member:
            self._members -= 1
            self._tasks -= count
            self.per_member = _share(self._tasks, self._members)


def _share(tasks: int, members: int) -> int:
    return 0 if members == 0 else -(-tasks // members)


def assign(
    members: Mapping[str, MemberSpec], subtopologies: Mapping[str, SubtopologySpec], standby_replicas: int
) -> dict[str, Tasks]:
    """Return the target of every member."""
    assignment = _Assignment(members, subtopologies, standby_replicas)
    assignment.assign_active()
    if standby_replicas > 0:
        assignment.assign_standby()
    return assignment.result()


class _Assignment:
    def __init__(
        self,
        members: Mapping[str, MemberSpec],
        subtopologies: Mapping[str, SubtopologySpec],
        standby_replicas: int,
    ) -> None:
        self._members = {each: members[each] for each in strings_in_hash_order(members)}
        self._subtopologies = subtopologies
        self._standby_replicas = standby_replicas
        active = sum(each.tasks for each in subtopologies.values())
        copies = standby_replicas * sum(each.tasks for each in subtopologies.values() if each.is_stateful)
        self._active_quota = _Quota(active, len(members))
        self._quota = _Quota(active + copies, len(members))
        self._processes: dict[str, ProcessState] = {}
        self._previous_active: dict[TaskId, _Member] = {}
        self._previous_standby: dict[TaskId, list[_Member]] = {}
        for member_id, spec in self._members.items():
            self._add_member(member_id, spec)
        order = table_order(self._processes, len(members))
        self._processes = {process_id: self._processes[process_id] for process_id in order}

    def _add_member(self, member_id: str, spec: MemberSpec) -> None:
        member = _Member(spec.process_id, member_id)
        self._processes.setdefault(spec.process_id, ProcessState()).add_member(member_id)
        for task in each_task(spec.tasks.active):
            self._previous_active[task] = member
        for task in each_task(spec.tasks.standby):
            self._previous_standby.setdefault(task, []).append(member)

    def result(self) -> dict[str, Tasks]:
        active: dict[str, list[TaskId]] = {}
        standby: dict[str, list[TaskId]] = {}
        for process in self._processes.values():
            active.update(process.active)
            standby.update(process.standby)
        return {
            each: Tasks(_compact(active.get(each, ())), _compact(standby.get(each, ())))
            for each in self._members
        }

    # Active tasks.

    def assign_active(self) -> None:
        tasks = sorted(self._tasks(stateful_only=False), key=_by_partition)
        tasks = [task for task in tasks if not self._keep_active(task)]
        tasks = [task for task in tasks if not self._activate_standby(task)]
        # In the order of subtopologies, the first assignment is one of ranges.
        tasks.sort(key=_by_subtopology)
        by_load = self._by_load()
        for task in tasks:
            if not by_load:
                raise KafkaError(
                    ErrorCode.UNKNOWN_SERVER_ERROR, f"No process available to assign active task {task}."
                )
            process = by_load.poll()
            self._count_active(process.add_to_least_loaded(task, active=True))
            by_load.add(process)

    def _keep_active(self, task: TaskId) -> bool:
        return self._activate(self._previous_active.get(task), task)

    def _activate_standby(self, task: TaskId) -> bool:
        return self._activate(self._least_loaded(self._previous_standby.get(task, []), None), task)

    def _activate(self, member: _Member | None, task: TaskId) -> bool:
        if member is None:
            return False
        process = self._processes[member.process_id]
        if process.task_counts[member.member_id] >= self._active_quota.per_member:
            return False
        self._count_active(process.add_task(member.member_id, task, active=True))
        return True

    def _count_active(self, count: int) -> None:
        self._active_quota.reached(count)
        self._quota.reached(count)

    # Standby tasks.

    def assign_standby(self) -> None:
        tasks = sorted(self._tasks(stateful_only=True), key=_by_partition, reverse=True)
        remaining: list[tuple[TaskId, int]] = []
        for task in tasks:
            for assigned in range(self._standby_replicas):
                if not (self._keep_on_active(task) or self._keep_standby(task)):
                    remaining.append((task, self._standby_replicas - assigned))
                    break
        remaining.sort(key=lambda each: _by_subtopology(each[0]), reverse=True)
        by_load = self._by_load()
        unassigned = 0
        for task, replicas in remaining:
            for assigned in range(replicas):
                if not self._to_least_loaded(by_load, task):
                    unassigned += replicas - assigned
                    break
        if unassigned:
            logger.warning("%d standby tasks are not assigned: there are too few processes", unassigned)

    def _keep_on_active(self, task: TaskId) -> bool:
        """Keep a copy where the task was active before."""
        return self._copy_to(self._previous_active.get(task), task)

    def _keep_standby(self, task: TaskId) -> bool:
        return self._copy_to(self._least_loaded(self._previous_standby.get(task, []), task), task)

    def _copy_to(self, member: _Member | None, task: TaskId) -> bool:
        if member is None:
            return False
        process = self._processes[member.process_id]
        full = process.task_counts[member.member_id] >= self._quota.per_member
        if full or process.has_task(task):
            return False
        self._quota.reached(process.add_task(member.member_id, task, active=False))
        return True

    def _to_least_loaded(self, by_load: JavaPriorityQueue[ProcessState], task: TaskId) -> bool:
        """Give a copy to the least loaded process without the task; return whether there is one."""
        skipped: list[ProcessState] = []
        found = False
        while by_load and not found:
            process = by_load.poll()
            skipped.append(process)
            if not process.has_task(task):
                self._quota.reached(process.add_to_least_loaded(task, active=False))
                found = True
        for process in reversed(skipped):
            by_load.add(process)
        return found

    # Helpers.

    def _tasks(self, stateful_only: bool) -> list[TaskId]:
        return [
            TaskId(subtopology_id, partition)
            for subtopology_id, spec in self._subtopologies.items()
            if spec.is_stateful or not stateful_only
            for partition in range(spec.tasks)
        ]

    def _by_load(self) -> JavaPriorityQueue[ProcessState]:
        return JavaPriorityQueue(self._processes.values(), lambda process: process.load)

    def _least_loaded(self, members: list[_Member], task: TaskId | None) -> _Member | None:
        """Return a previous owner of low load; with `task`, None if the first one's process has it already.

        A later member is chosen only if both its process and itself have less load.
        """
        if not members:
            return None
        chosen = members[0]
        first = self._processes[chosen.process_id]
        process_load, member_load = first.load, first.task_counts[chosen.member_id]
        for member in members[1:]:
            process = self._processes[member.process_id]
            if process.load >= process_load or (task is not None and process.has_task(task)):
                continue
            if process.task_counts[member.member_id] < member_load:
                process_load, member_load = process.load, process.task_counts[member.member_id]
                chosen = member
        return None if task is not None and first.has_task(task) else chosen


def _by_partition(task: TaskId) -> tuple[int, bytes]:
    return task.partition, string_order(task.subtopology_id)


def _by_subtopology(task: TaskId) -> tuple[bytes, int]:
    return string_order(task.subtopology_id), task.partition


def _compact(tasks: Iterable[TaskId]) -> TaskSet:
    found: dict[str, list[int]] = {}
    for task in tasks:
        found.setdefault(task.subtopology_id, []).append(task.partition)
    return {subtopology_id: tuple(sorted(partitions)) for subtopology_id, partitions in found.items()}
