"""The assignors on small groups; the interop tests compare them with Kafka's on many."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from moldau.base.ids import TopicId
from moldau.groups.assignors import ASSIGNORS
from moldau.groups.assignors.spec import Assignment, GroupSpec, MemberSpec
from tests.harness.worlds.coordination import topic_id_of

A, B = topic_id_of("a"), topic_id_of("b")


def assigned(
    assignor: str, counts: dict[TopicId, int], members: dict[str, MemberSpec], homogeneous: bool = True
) -> dict[str, Assignment]:
    owned: dict[TopicId, set[int]] = {}
    for member in members.values():
        for topic_id, partitions in member.assignment.items():
            owned.setdefault(topic_id, set()).update(partitions)
    return ASSIGNORS[assignor](GroupSpec(members, homogeneous, counts, owned))


def test_range_assigns_consecutive_partitions_and_static_members_first() -> None:
    members = {"1": MemberSpec([A, B]), "2": MemberSpec([A, B]), "3": MemberSpec([A, B], instance_id="z")}
    assert assigned("range", {A: 5, B: 3}, members) == {
        "3": {A: (0, 1), B: (0,)},
        "1": {A: (2, 3), B: (1,)},
        "2": {A: (4,), B: (2,)},
    }


def test_uniform_moves_as_few_partitions_as_possible() -> None:
    members = {"1": MemberSpec([A], {A: (0, 1, 2, 3)}), "2": MemberSpec([A]), "3": MemberSpec([A])}
    assert assigned("uniform", {A: 6}, members) == {
        "1": {A: (0, 1)},
        "2": {A: (4, 5)},
        "3": {A: (2, 3)},
    }


def test_groups_without_members_or_topics_get_nothing() -> None:
    for assignor in ASSIGNORS:
        assert assigned(assignor, {}, {}) == {}
        assert not any(assigned(assignor, {}, {"1": MemberSpec([])}).values())


@given(
    st.sampled_from(sorted(ASSIGNORS)),
    st.tuples(st.integers(1, 30), st.integers(1, 30)),
    st.lists(st.sampled_from([(A,), (B,), (A, B)]), min_size=1, max_size=12),
)
def test_every_partition_is_assigned_to_one_subscriber(
    assignor: str, sizes: tuple[int, int], subscriptions: list[tuple[TopicId, ...]]
) -> None:
    counts = dict(zip((A, B), sizes, strict=True))
    members = {f"m{number}": MemberSpec(topics) for number, topics in enumerate(subscriptions)}
    homogeneous = len(set(subscriptions)) == 1
    given_out = [
        (topic_id, partition, member_id)
        for member_id, partitions in assigned(assignor, counts, members, homogeneous).items()
        for topic_id, found in partitions.items()
        for partition in found
    ]
    assert all(topic_id in members[member_id].subscribed_topic_ids for topic_id, _, member_id in given_out)
    subscribed = {topic_id for topics in subscriptions for topic_id in topics}
    wanted = sorted((topic_id, index) for topic_id in subscribed for index in range(counts[topic_id]))
    assert sorted((topic_id, partition) for topic_id, partition, _ in given_out) == wanted
