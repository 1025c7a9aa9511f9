"""The server-side assignors give the same assignments as Kafka's classes, for random groups of all
sizes.
"""

from __future__ import annotations

import random

import pytest

from moldau.base.ids import TopicId, format_uuid, random_uuid
from moldau.groups.assignors import ASSIGNORS, simple
from moldau.groups.assignors.java_order import strings_in_hash_order
from moldau.groups.assignors.spec import Assignment, GroupSpec, MemberSpec
from tests.interop.java_oracle import ask_java

pytestmark = pytest.mark.interop

GROUPS = 300


def _simple(spec: GroupSpec) -> dict[str, Assignment]:
    return simple.assign(spec, {topic_id: range(count) for topic_id, count in spec.partition_counts.items()})


def _partly(spec: GroupSpec) -> dict[str, Assignment]:
    counts = spec.partition_counts
    return simple.assign(
        spec, {topic_id: [n for n in range(counts[topic_id]) if n % 5 != 4] for topic_id in counts}
    )


OURS = {**ASSIGNORS, "simple": _simple, "partly": _partly}


@pytest.mark.parametrize("assignor", sorted(OURS))
def test_assignments_equal_kafkas(assignor: str) -> None:
    specs = [_random_group(random.Random(seed), rounds=seed % 3, assignor=assignor) for seed in range(GROUPS)]
    said = [fields[1] for fields in ask_java("Assignments", [_line(assignor, spec) for spec in specs])]
    for seed, (spec, java) in enumerate(zip(specs, said, strict=True)):
        assert _text(OURS[assignor](spec)) == java, f"seed {seed}"


def _random_group(chance: random.Random, rounds: int, assignor: str) -> GroupSpec:
    """Make a group whose members keep earlier assignments while members and topics change."""
    homogeneous = chance.random() < 0.5
    topics: dict[TopicId, int] = {}
    members: dict[str, MemberSpec] = {}
    for round_number in range(rounds + 1):
        for _ in range(chance.choice((1, 2, 5, 15))):
            topics[random_uuid(chance)] = chance.choice((1, 2, 3, 7, 20, 90))
        for topic_id in list(topics)[: chance.randrange(0, 2) if len(topics) > 1 else 0]:
            del topics[topic_id]
        for name in list(members):
            if chance.random() < 0.3:
                del members[name]
        for _ in range(chance.choice((1, 2, 4, 30))):
            members[format_uuid(random_uuid(chance))] = MemberSpec(
                (), instance_id=f"i{chance.randrange(0, 1000)}" if chance.random() < 0.3 else None
            )
        spec = _spec(chance, members, topics, homogeneous)
        if round_number < rounds:
            given = OURS[assignor](spec)
            members = {
                name: member._replace(assignment=given.get(name, {})) for name, member in spec.members.items()
            }
    return spec


def _spec(
    chance: random.Random, members: dict[str, MemberSpec], topics: dict[TopicId, int], homogeneous: bool
) -> GroupSpec:
    everything = list(topics)
    subscribed = {
        name: everything
        if homogeneous
        else chance.sample(everything, chance.randrange(0, len(everything) + 1))
        for name in members
    }
    assigned: dict[TopicId, set[int]] = {}
    for member in members.values():
        for topic_id, partitions in member.assignment.items():
            assigned.setdefault(topic_id, set()).update(partitions)
    ordered = {
        name: members[name]._replace(subscribed_topic_ids=subscribed[name])
        for name in strings_in_hash_order(members)
    }
    return GroupSpec(ordered, homogeneous, topics, assigned)


def _line(assignor: str, spec: GroupSpec) -> str:
    kind = "homogeneous" if spec.homogeneous else "heterogeneous"
    topics = ",".join(f"{format_uuid(each)}={count}" for each, count in spec.partition_counts.items())
    members = [
        ";".join(
            (
                name,
                member.instance_id or "-",
                ",".join(map(format_uuid, member.subscribed_topic_ids)),
                ",".join(
                    f"{format_uuid(topic_id)}={'+'.join(map(str, partitions))}"
                    for topic_id, partitions in member.assignment.items()
                ),
            )
        )
        for name, member in spec.members.items()
    ]
    return " ".join((assignor, kind, topics, *members))


def _text(assignments: dict[str, Assignment]) -> str:
    return "".join(f"{name};{_partitions(assignments[name])} " for name in sorted(assignments))


def _partitions(assignment: Assignment) -> str:
    by_name = {format_uuid(topic_id): partitions for topic_id, partitions in assignment.items()}
    return "".join(
        f"{name}={''.join(f'{partition}+' for partition in by_name[name])}" for name in sorted(by_name)
    )
