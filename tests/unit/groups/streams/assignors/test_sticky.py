"""The sticky task assignor: the assignments of Apache Kafka 4.3, and rules that hold for any group."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from moldau.groups.streams.assignors.process_state import JavaPriorityQueue
from moldau.groups.streams.assignors.sticky import MemberSpec, SubtopologySpec, assign
from moldau.groups.streams.tasks import Tasks, each_task

SUBTOPOLOGIES = {
    "0": SubtopologySpec(7, is_stateful=False),
    "1": SubtopologySpec(7, is_stateful=True),
    "2": SubtopologySpec(5, is_stateful=True),
}

#: Active and standby tasks after seven members of three processes have joined.
GROWN = {
    "M0": "0_0 1_0 2_0 | 1_4 2_3",
    "M1": "1_3 2_2 2_3 | 1_5 2_4",
    "M2": "0_3 1_2 1_5 | 2_2",
    "M3": "0_2 2_1 2_4 | 1_1 1_2",
    "M4": "1_1 1_4 | 1_6 2_1",
    "M5": "0_4 0_5 0_6 | 1_0 1_3",
    "M6": "0_1 1_6 | 2_0",
}
#: The same after four of them have left.
SHRUNK = {
    "M4": "0_0 1_1 1_4 2_1 2_3 2_4 | 1_0 1_3 1_6 2_0 2_2",
    "M5": "0_3 0_4 0_5 0_6 1_0 1_2 1_3 | 1_5 2_3 2_4",
    "M6": "0_1 0_2 1_5 1_6 2_0 2_2 | 1_1 1_2 1_4 2_1",
}


def _text(tasks: Tasks) -> str:
    active, standby = (
        " ".join(f"{task.subtopology_id}_{task.partition}" for task in sorted(each_task(each)))
        for each in (tasks.active, tasks.standby)
    )
    return f"{active} | {standby}"


def _text_of(targets: dict[str, Tasks]) -> dict[str, str]:
    return {member_id.partition("-")[0]: _text(targets[member_id]) for member_id in sorted(targets)}


def _members(processes: str) -> dict[str, str]:
    return {f"M{number}-member": process for number, process in enumerate(processes)}


def _grown(processes: str, replicas: int) -> tuple[dict[str, str], dict[str, Tasks]]:
    """Return the members and their targets after joining one by one."""
    members: dict[str, str] = {}
    targets: dict[str, Tasks] = {}
    for member_id, process in _members(processes).items():
        members[member_id] = process
        targets = _next(members, targets, replicas)
    return members, targets


def _next(members: dict[str, str], targets: dict[str, Tasks], replicas: int) -> dict[str, Tasks]:
    specs = {key: MemberSpec(process, targets.get(key, Tasks())) for key, process in members.items()}
    return assign(specs, SUBTOPOLOGIES, replicas)


def test_assignments_equal_apache_kafkas() -> None:
    """The sequence of the differential scene `streams groups, assignments`, where both brokers agree."""
    members, targets = _grown("pqprqsr", replicas=1)
    assert _text_of(targets) == GROWN
    for gone in ("M0-member", "M3-member", "M2-member", "M1-member"):
        del members[gone]
        targets = _next(members, targets, 1)
    assert _text_of(targets) == SHRUNK


@given(
    processes=st.text("pqr", min_size=1, max_size=6),
    later=st.text("pqr", min_size=1, max_size=6),
    replicas=st.integers(0, 2),
)
def test_every_task_is_active_once_and_copied_in_other_processes(
    processes: str, later: str, replicas: int
) -> None:
    _, targets = _grown(processes, replicas)
    members = _members(later)
    targets = _next(members, targets, replicas)
    active = Counter(task for each in targets.values() for task in each_task(each.active))
    assert active == Counter(
        (key, index) for key, each in SUBTOPOLOGIES.items() for index in range(each.tasks)
    )
    copies = Counter(task for each in targets.values() for task in each_task(each.standby))
    expected = min(replicas, len(set(later)) - 1)
    stateful = [task for task in active if task.subtopology_id != "0"]
    assert copies == Counter({task: expected for task in stateful if expected})
    roles = Counter(
        (members[member_id], task)
        for member_id, each in targets.items()
        for tasks in (each.active, each.standby)
        for task in each_task(tasks)
    )
    assert set(roles.values()) == {1}


def test_least_loaded_members_are_chosen_in_javas_order() -> None:
    queue = JavaPriorityQueue(["a2", "b1", "c1", "d2", "e1"], lambda each: int(each[1]))
    assert [queue.poll() for _ in range(5)] == ["b1", "e1", "c1", "d2", "a2"]
