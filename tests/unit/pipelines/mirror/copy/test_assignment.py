"""Partitions of copy tasks: stable, disjoint, and only those that exist on the target."""

from __future__ import annotations

from moldau.base.ids import TopicPartition, Uuid
from moldau.pipelines.mirror.config.flow import TopicSelection
from moldau.pipelines.mirror.config.properties import read_config
from moldau.pipelines.mirror.copy.assignment import KnownTopic, assigned_partitions

ID = Uuid(bytes(15) + b"\x07")
SELECTION = TopicSelection(
    read_config(
        {
            "clusters": "a,b",
            "a.bootstrap.servers": "x:1",
            "b.bootstrap.servers": "y:1",
            "a->b.enabled": "true",
        }
    ).flow("a->b")
)


def topics(**counts: int) -> dict[str, KnownTopic]:
    return {name.replace("__", "."): KnownTopic(ID, count) for name, count in counts.items()}


def test_tasks_share_all_partitions() -> None:
    source, target = topics(t=7, u=3), topics(a__t=7, a__u=3)
    shares = [assigned_partitions(SELECTION, source, target, task, 3)[0] for task in range(3)]
    together = sorted(each.source for share in shares for each in share)
    assert together == sorted(
        [TopicPartition("t", n) for n in range(7)] + [TopicPartition("u", n) for n in range(3)]
    )
    assert max(map(len, shares)) - min(map(len, shares)) <= 2


def test_partitions_wait_for_the_target() -> None:
    assigned, missing = assigned_partitions(SELECTION, topics(t=3), topics(a__t=2), 0, 1)
    assert [each.target for each in assigned] == [TopicPartition("a.t", 0), TopicPartition("a.t", 1)]
    assert missing
    assert assigned_partitions(SELECTION, topics(t=3), {}, 0, 1) == ([], True)


def test_topics_of_the_target_are_not_sent_back() -> None:
    assert assigned_partitions(SELECTION, topics(b__t=1), topics(t=1), 0, 1) == ([], False)
