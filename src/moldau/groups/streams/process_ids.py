"""The processes that own the tasks of a streams group, including tasks they have not revoked yet.

A task is active in at most one process. A process has at most one role for a task, because the roles share a
state directory.
"""

from __future__ import annotations

from moldau.groups.streams.member import StreamsMember
from moldau.groups.streams.tasks import AssignedTasks, TaskId, each_task


class TaskProcesses:
    def __init__(self) -> None:
        self._active: dict[TaskId, str] = {}
        #: Processes with a standby or warm-up task, and how many of these roles each has.
        self._copies: dict[TaskId, dict[str, int]] = {}

    def update(self, old: StreamsMember | None, new: StreamsMember | None) -> None:
        """Replace the tasks of a member that has changed, joined or left."""
        if old is not None:
            for tasks in (old.assigned, old.pending_revocation):
                self._remove(tasks, old.process_id)
        if new is not None:
            for tasks in (new.assigned, new.pending_revocation):
                self._add(tasks, new.process_id)

    def _add(self, tasks: AssignedTasks, process_id: str) -> None:
        self._active.update(dict.fromkeys(each_task(tasks.active), process_id))
        for copies in (tasks.standby, tasks.warmup):
            for task in each_task(copies):
                processes = self._copies.setdefault(task, {})
                processes[process_id] = processes.get(process_id, 0) + 1

    def _remove(self, tasks: AssignedTasks, process_id: str) -> None:
        for task in each_task(tasks.active):
            if self._active.get(task) == process_id:
                del self._active[task]
        for copies in (tasks.standby, tasks.warmup):
            for task in each_task(copies):
                self._remove_copy(task, process_id)

    def _remove_copy(self, task: TaskId, process_id: str) -> None:
        processes = self._copies.get(task, {})
        if processes.get(process_id, 0) > 1:
            processes[process_id] -= 1
        else:
            processes.pop(process_id, None)
        if not processes:
            self._copies.pop(task, None)

    def is_active(self, task: TaskId) -> bool:
        return task in self._active

    def runs(self, task: TaskId, process_id: str) -> bool:
        """Return whether a process has the task as active task."""
        return self._active.get(task) == process_id

    def has_copy(self, task: TaskId, process_id: str) -> bool:
        """Return whether a process has the task as standby or warm-up task."""
        return process_id in self._copies.get(task, ())
