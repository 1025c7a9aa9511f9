"""The load of processes while tasks are assigned, and Java's priority queue, which breaks ties among them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Generic, TypeVar

from moldau.base.java_hash import string_hash
from moldau.groups.assignors.java_order import in_hash_order
from moldau.groups.streams.tasks import TaskId

T = TypeVar("T")


class JavaPriorityQueue(Generic[T]):
    """A binary heap with the sift order of Java's `PriorityQueue`, which decides between equal elements."""

    def __init__(self, elements: Iterable[T], key: Callable[[T], float]) -> None:
        self._key = key
        self._heap: list[T] = []
        for each in elements:
            self.add(each)

    def __len__(self) -> int:
        return len(self._heap)

    def add(self, element: T) -> None:
        heap, key = self._heap, self._key
        heap.append(element)
        index, value = len(heap) - 1, key(element)
        while index > 0:
            parent = (index - 1) >> 1
            if value >= key(heap[parent]):
                break
            heap[index] = heap[parent]
            index = parent
        heap[index] = element

    def poll(self) -> T:
        """Remove and return the least element of a queue that is not empty."""
        heap, key = self._heap, self._key
        least, last = heap[0], heap.pop()
        size = len(heap)
        if size == 0:
            return least
        index, value = 0, key(last)
        while (child := 2 * index + 1) < size:
            if child + 1 < size and key(heap[child]) > key(heap[child + 1]):
                child += 1
            if value <= key(heap[child]):
                break
            heap[index] = heap[child]
            index = child
        heap[index] = last
        return least


class ProcessState:
    """The members of one process and the tasks assigned to them."""

    def __init__(self) -> None:
        self.task_counts: dict[str, int] = {}
        self.active: dict[str, list[TaskId]] = {}
        self.standby: dict[str, list[TaskId]] = {}
        self._tasks: set[TaskId] = set()
        self._assigned = 0
        #: Members and their number of tasks; None if a task was given to a chosen member since.
        self._by_load: JavaPriorityQueue[list[object]] | None = None

    @property
    def load(self) -> float:
        return self._assigned / len(self.task_counts)

    def add_member(self, member_id: str) -> None:
        self.task_counts[member_id] = 0

    def has_task(self, task: TaskId) -> bool:
        return task in self._tasks

    def add_task(self, member_id: str, task: TaskId, *, active: bool) -> int:
        """Return the number of tasks that the member has now."""
        self._by_load = None
        return self._add(member_id, task, active)

    def add_to_least_loaded(self, task: TaskId, *, active: bool) -> int:
        """Give a task to the member with the fewest tasks; return how many it has now."""
        if self._by_load is None:
            members = in_hash_order(list(self.task_counts), string_hash)
            self._by_load = JavaPriorityQueue(
                [[member_id, self.task_counts[member_id]] for member_id in members], _tasks_of
            )
        entry = self._by_load.poll()
        entry[1] = count = self._add(str(entry[0]), task, active)
        self._by_load.add(entry)
        return count

    def _add(self, member_id: str, task: TaskId, active: bool) -> int:
        self._assigned += 1
        self._tasks.add(task)
        (self.active if active else self.standby).setdefault(member_id, []).append(task)
        self.task_counts[member_id] += 1
        return self.task_counts[member_id]


def _tasks_of(entry: Sequence[object]) -> float:
    count = entry[1]
    return count if isinstance(count, int) else 0


def table_order(names: Iterable[str], capacity: int) -> list[str]:
    """Order names as in a Java hash table that was created with this capacity."""
    found = list(names)
    size = 1
    while size < capacity or len(found) * 4 > size * 3:
        size *= 2

    def bucket(name: str) -> int:
        value = string_hash(name)
        return (value ^ (value & 0xFFFF_FFFF) >> 16) & (size - 1)

    return sorted(found, key=bucket)
