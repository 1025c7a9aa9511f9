"""Tasks of streams groups: sets of partitions by subtopology, in three roles.

An active task processes records. A standby task keeps a copy of an active task's state. A warm-up task builds
a copy for a task that is to move; Kafka 4.3 stores warm-up tasks but assigns none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, TypeVar

from moldau.groups.assignors.java_order import string_order


class TaskId(NamedTuple):
    subtopology_id: str
    partition: int


#: Partitions in ascending order by subtopology; no entry is empty.
TaskSet = Mapping[str, tuple[int, ...]]
#: Partitions with the epoch in which each was assigned, by subtopology; no entry is empty.
TaskEpochs = Mapping[str, Mapping[int, int]]


class StoredTaskIds(Protocol):
    """TaskIds, as several records and messages have them."""

    subtopology_id: str
    partitions: list[int]


I = TypeVar("I", bound=StoredTaskIds)  # noqa: E741


@dataclass(frozen=True, slots=True)
class Tasks:
    """Tasks by role: a target assignment, or what a client reports to own."""

    active: TaskSet = field(default_factory=dict)
    standby: TaskSet = field(default_factory=dict)
    warmup: TaskSet = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AssignedTasks:
    """The tasks of a member; active ones have the epoch of their assignment (KIP-1251)."""

    active: TaskEpochs = field(default_factory=dict)
    standby: TaskSet = field(default_factory=dict)
    warmup: TaskSet = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        return not (self.active or self.standby or self.warmup)

    def without_epochs(self) -> Tasks:
        return Tasks(
            {key: tuple(sorted(epochs)) for key, epochs in self.active.items()}, self.standby, self.warmup
        )

    def overlaps(self, tasks: Tasks) -> bool:
        """Return whether a task has the same role in both."""
        return (
            _overlap(self.active, tasks.active)
            or _overlap(self.standby, tasks.standby)
            or _overlap(self.warmup, tasks.warmup)
        )

    def contains(self, tasks: Tasks) -> bool:
        """Return whether all these tasks are among them, in the same roles."""
        return (
            _within(tasks.active, self.active)
            and _within(tasks.standby, self.standby)
            and _within(tasks.warmup, self.warmup)
        )

    def with_added(self, added: AssignedTasks) -> AssignedTasks:
        active = dict(self.active)
        for subtopology_id, epochs in added.active.items():
            active[subtopology_id] = {**active.get(subtopology_id, {}), **epochs}
        return AssignedTasks(active, _union(self.standby, added.standby), _union(self.warmup, added.warmup))


NO_TASKS = Tasks()
NONE_ASSIGNED = AssignedTasks()


def task_set(ids: Iterable[StoredTaskIds]) -> TaskSet:
    found: dict[str, set[int]] = {}
    for each in ids:
        if each.partitions:
            found.setdefault(each.subtopology_id, set()).update(each.partitions)
    return {subtopology_id: tuple(sorted(partitions)) for subtopology_id, partitions in found.items()}


def task_ids(kind: type[I], tasks: Mapping[str, Iterable[int]]) -> list[I]:
    """Return tasks as structs of a record or message, in Kafka's order."""
    return [
        kind(subtopology_id=subtopology_id, partitions=sorted(tasks[subtopology_id]))  # type: ignore[call-arg]
        for subtopology_id in sorted(tasks, key=string_order)
    ]


def each_task(tasks: Mapping[str, Iterable[int]]) -> Iterator[TaskId]:
    for subtopology_id, partitions in tasks.items():
        for partition in partitions:
            yield TaskId(subtopology_id, partition)


def _overlap(one: Mapping[str, Iterable[int]], other: TaskSet) -> bool:
    return any(not set(found).isdisjoint(other.get(key, ())) for key, found in one.items())


def _within(inner: TaskSet, outer: Mapping[str, Iterable[int]]) -> bool:
    return all(set(found) <= set(outer.get(key, ())) for key, found in inner.items())


def _union(one: TaskSet, other: TaskSet) -> TaskSet:
    result = dict(one)
    for key, found in other.items():
        result[key] = tuple(sorted({*result.get(key, ()), *found}))
    return result
