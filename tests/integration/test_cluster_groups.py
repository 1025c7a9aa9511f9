"""Groups of a cluster of three: they go on when the broker that coordinates them is killed."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from moldau.testing import Cluster
from tests.harness.cluster_members import MEMBERS, PARTITIONS, QUIET, Member, Progress
from tests.harness.whereabouts import coordinator_of

BATCH = 300
ROUNDS = 6

CONFIG = {
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.heartbeat.interval.ms": "500",
    "group.consumer.min.heartbeat.interval.ms": "500",
}


@pytest.fixture(scope="module")
def three() -> Iterator[Cluster]:
    with Cluster(brokers=3, config=CONFIG) as cluster:
        yield cluster


@pytest.fixture
def cluster(three: Cluster) -> Cluster:
    """With all its nodes."""
    three.start()
    return three


def create(cluster: Cluster, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, **QUIET})
    for created in admin.create_topics([NewTopic(topic, PARTITIONS, 3)]).values():
        created.result(20)


class Feed:
    """Numbers, spread over the partitions; all acknowledged."""

    def __init__(self, cluster: Cluster, topic: str) -> None:
        self._producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "acks": "all", **QUIET})
        self._topic = topic
        self.sent = 0

    def more(self) -> None:
        failed: list[object] = []
        for number in range(self.sent, self.sent + BATCH):
            self._producer.produce(
                self._topic,
                str(number),
                partition=number % PARTITIONS,
                on_delivery=lambda error, _: failed.append(error) if error else None,
            )
        assert self._producer.flush(40) == 0 and not failed
        self.sent += BATCH


@pytest.mark.parametrize("kind", MEMBERS)
def test_a_group_goes_on_when_its_coordinator_is_killed(cluster: Cluster, topic: str, kind: str) -> None:
    create(cluster, topic)
    feed, progress = Feed(cluster, topic), Progress()
    member = MEMBERS[kind](cluster, topic, f"group-of-{topic}")
    try:
        for step in range(ROUNDS):
            feed.more()
            read_and_commit(member, progress, feed.sent)
            if step in (1, 3):
                victim = coordinator_of(cluster, f"group-of-{topic}")
                cluster.kill(victim)
            elif step == 2:
                cluster.start()
        found = member.committed()
        assert found == progress.committed
        assert sum(found.values()) == feed.sent
    finally:
        member.close()


def read_and_commit(member: Member, progress: Progress, wanted: int) -> None:
    """Until everything that was sent is read and committed."""
    deadline = time.monotonic() + 40
    while time.monotonic() < deadline:
        member.poll(progress)
        if progress.positions != progress.committed and member.commit(progress.positions):
            progress.stored()
        if len(progress.seen) == wanted and sum(progress.committed.values()) == wanted:
            return
    raise AssertionError(f"{len(progress.seen)} of {wanted} read, {progress.committed} committed")
