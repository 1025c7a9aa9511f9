"""Offsets of groups on the target: exact, never past copied records, never back, not for active groups."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from confluent_kafka import Consumer

from moldau.base.ids import TopicPartition
from moldau.client.admin.client import AdminClient, checked
from moldau.client.admin.topic_types import NewTopic
from moldau.client.records import OffsetAndMetadata
from moldau.pipelines.mirror.records.checkpoint import read_checkpoint
from moldau.pipelines.mirror.records.heartbeat import read_heartbeat
from tests.harness.mirror import MirrorProcess, produce, read_all
from tests.harness.waiting import eventually
from tests.integration.mirror.conftest import Pair


def committed(admin: AdminClient, group: str, topic: str) -> int | None:
    found = checked(admin.list_group_offsets(group)).get(TopicPartition(topic, 0))
    return None if found is None else found.offset


def commit(admin: AdminClient, group: str, topic: str, offset: int) -> None:
    wanted = {TopicPartition(topic, 0): OffsetAndMetadata(offset, "note")}
    assert set(admin.alter_group_offsets(group, wanted).values()) == {None}


@contextmanager
def member(bootstrap: str, group: str, topic: str) -> Iterator[Consumer]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False})
    consumer.subscribe([topic])
    try:
        eventually(lambda: (consumer.poll(0.1), consumer.assignment())[1])
        yield consumer
    finally:
        consumer.close()


def test_offsets_are_exact_and_follow_the_group(pair: Pair, mirror: MirrorProcess) -> None:
    checked(pair.admin_a.create_topics([NewTopic("shifted", 1)]))
    produce(pair.a, "shifted", [str(n) for n in range(1000)])
    checked(pair.admin_a.delete_records({TopicPartition("shifted", 0): 100}))
    eventually(lambda: "a.shifted" in pair.admin_b.list_topics())
    commit(pair.admin_a, "g1", "shifted", 777)

    def unread_there() -> bool:
        offset = committed(pair.admin_b, "g1", "a.shifted")
        if offset is None:
            return False
        return bool(read_all(pair.b, "a.shifted")[offset].value() == b"777")

    eventually(unread_there, what=mirror.log[-2000:])
    commit(pair.admin_a, "g1", "shifted", 1000)
    copied = len(read_all(pair.b, "a.shifted"))
    eventually(lambda: committed(pair.admin_b, "g1", "a.shifted") == copied)


def test_offsets_do_not_move_back(pair: Pair, mirror: MirrorProcess) -> None:
    checked(pair.admin_a.create_topics([NewTopic("forward", 1)]))
    produce(pair.a, "forward", [str(n) for n in range(100)])
    commit(pair.admin_a, "g2", "forward", 50)
    eventually(lambda: committed(pair.admin_b, "g2", "a.forward") == 50, what=mirror.log[-2000:])
    commit(pair.admin_b, "g2", "a.forward", 80)
    commit(pair.admin_a, "g2", "forward", 60)
    checkpoints = "a.checkpoints.internal"

    def checkpoint_written() -> bool:
        found = [read_checkpoint(each.key(), each.value()) for each in read_all(pair.b, checkpoints)]
        return any(each.group == "g2" and each.upstream_offset == 60 for each in found)

    eventually(checkpoint_written)
    commit(pair.admin_a, "g2", "forward", 90)
    eventually(lambda: committed(pair.admin_b, "g2", "a.forward") == 90)


def test_active_groups_keep_their_offsets(pair: Pair, mirror: MirrorProcess) -> None:
    checked(pair.admin_a.create_topics([NewTopic("active", 1)]))
    produce(pair.a, "active", [str(n) for n in range(100)])
    eventually(lambda: "a.active" in pair.admin_b.list_topics())
    with member(pair.b, "g3", "a.active") as consumer:
        commit(pair.admin_a, "g3", "active", 70)
        commit(pair.admin_a, "g4", "active", 70)
        eventually(lambda: committed(pair.admin_b, "g4", "a.active") == 70, what=mirror.log[-2000:])
        assert committed(pair.admin_b, "g3", "a.active") is None
        assert consumer.assignment()
    eventually(lambda: committed(pair.admin_b, "g3", "a.active") == 70)


def test_deleted_topics_do_not_delay_other_groups(pair: Pair, mirror: MirrorProcess) -> None:
    checked(pair.admin_a.create_topics([NewTopic("vanishing", 1), NewTopic("staying", 1)]))
    for topic in ("vanishing", "staying"):
        produce(pair.a, topic, [str(n) for n in range(100)])
        eventually(lambda topic=topic: f"a.{topic}" in pair.admin_b.list_topics())
    commit(pair.admin_a, "g5", "vanishing", 50)
    commit(pair.admin_a, "g5", "staying", 50)
    eventually(lambda: committed(pair.admin_b, "g5", "a.vanishing") == 50, what=mirror.log[-2000:])
    checked(pair.admin_a.delete_topics(["vanishing"]))
    eventually(lambda: "vanishing" not in pair.admin_a.list_topics())
    eventually(lambda: "partitions were deleted" in mirror.log)
    checked(pair.admin_b.delete_topics(["a.vanishing"]))
    mirror.stop()
    mirror.start()
    commit(pair.admin_a, "g5", "staying", 70)
    commit(pair.admin_a, "g6", "staying", 70)
    for group in ("g5", "g6"):
        eventually(lambda group=group: committed(pair.admin_b, group, "a.staying") == 70, timeout=20)


def test_heartbeats_of_both_clusters(pair: Pair, mirror: MirrorProcess) -> None:
    def sources(bootstrap: str, topic: str) -> set[tuple[str, str]]:
        found: list[Any] = read_all(bootstrap, topic)
        return {read_heartbeat(each.key(), each.value())[:2] for each in found}

    eventually(lambda: ("a", "b") in sources(pair.b, "heartbeats"))
    eventually(lambda: ("b", "a") in sources(pair.a, "heartbeats"))
    eventually(lambda: ("b", "a") in sources(pair.b, "a.heartbeats"))


def test_topics_of_the_target_do_not_return(pair: Pair, mirror: MirrorProcess) -> None:
    checked(
        pair.admin_a.create_topics([NewTopic("b.already", 1), NewTopic("own-topic", 1), NewTopic("after", 1)])
    )
    eventually(lambda: "a.after" in pair.admin_b.list_topics())
    names = set(pair.admin_b.list_topics())
    assert not {"a.b.already", "a.own-topic", "b.already"} & names
