"""Replication on three real nodes: acknowledged records survive any node, and replicas converge."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from moldau.testing import Cluster
from tests.harness.folders.log_folder import check_partition_folder
from tests.harness.waiting import eventually
from tests.harness.wire.requests import wait_until_known

CONFIG = {"replica.lag.time.max.ms": "2000", "offsets.topic.num.partitions": "3"}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(brokers=3, config=CONFIG) as running:
        yield running


class Scene:
    """A topic of a cluster."""

    def __init__(self, cluster: Cluster, topic: str, **config: str) -> None:
        self.cluster = cluster
        self.topic = topic
        self.admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
        created = self.admin.create_topics([NewTopic(topic, 3, 3, config=config)])
        created[topic].result(timeout=60)
        wait_until_known(cluster.bootstrap_servers, topic)
        self.acknowledged: list[bytes] = []
        self.failures: list[KafkaError] = []
        self.producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "acks": "all"})

    def partitions(self) -> dict[int, Any]:
        found = self.admin.list_topics(self.topic, timeout=60).topics[self.topic].partitions
        return dict(found)

    def leader(self, partition: int = 0) -> int:
        return int(self.partitions()[partition].leader)

    def send(self, start: int, count: int) -> None:
        def on_delivery(error: KafkaError | None, message: Any) -> None:
            if error is None:
                self.acknowledged.append(message.value())
            else:
                self.failures.append(error)

        for number in range(start, start + count):
            self.producer.produce(self.topic, b"%d" % number, partition=number % 3, on_delivery=on_delivery)
            self.producer.poll(0)

    def all_in_sync(self) -> None:
        eventually(
            lambda: all(len(each.isrs) == 3 for each in self.partitions().values()),
            what="all replicas are in sync",
        )

    def read(self) -> list[bytes]:
        consumer = Consumer(
            {
                "bootstrap.servers": self.cluster.bootstrap_servers,
                "group.id": "none",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "auto.offset.reset": "earliest",
            }
        )
        consumer.assign([TopicPartition(self.topic, index, 0) for index in range(3)])
        values, ended = [], set()
        while len(ended) < 3:
            for message in consumer.consume(1000, timeout=0.2):
                error = message.error()
                if error is not None:
                    assert error.code() == KafkaError._PARTITION_EOF
                    ended.add(message.partition())
                else:
                    values.append(message.value())
        consumer.close()
        return values

    def folders(self, partition: int) -> list[Path]:
        return [node.data_dir / "logs" / f"{self.topic}-{partition}" for node in self.cluster.brokers]

    def equal(self) -> bool:
        """Return whether the replicas of every partition have the same bytes."""
        return all(len({_digest(folder) for folder in self.folders(index)}) == 1 for index in range(3))


def _digest(folder: Path) -> str:
    check_partition_folder(folder)
    return hashlib.sha256(b"".join(path.read_bytes() for path in sorted(folder.glob("*.log")))).hexdigest()


def test_acknowledged_records_survive_a_killed_leader(cluster: Cluster) -> None:
    scene = Scene(cluster, "killed-leader", **{"min.insync.replicas": "2"})
    scene.send(0, 3000)
    scene.producer.flush(60)
    victim = scene.leader()
    scene.send(3000, 500)
    cluster.kill(victim)
    scene.send(3500, 3000)
    scene.producer.flush(60)
    assert scene.failures == []
    assert scene.leader() != victim
    assert sorted(map(int, scene.read())) == list(range(6500))
    cluster.restart(victim)
    scene.all_in_sync()
    eventually(scene.equal, what="the replicas are equal")
    assert len(scene.acknowledged) == 6500


def test_a_restarted_broker_catches_up(cluster: Cluster) -> None:
    scene = Scene(cluster, "backlog")
    away = (scene.leader() % 3) + 1
    cluster.node(away).stop()
    scene.send(0, 60_000)
    scene.producer.flush(60)
    assert len(scene.acknowledged) == 60_000
    cluster.restart(away)
    scene.all_in_sync()
    eventually(scene.equal, what="the replicas are equal")


def test_too_few_in_sync_replicas_refuse_acks_all_and_lose_nothing(cluster: Cluster) -> None:
    scene = Scene(cluster, "too-few", **{"min.insync.replicas": "3"})
    scene.send(0, 30)
    scene.producer.flush(60)
    away = (scene.leader() % 3) + 1
    cluster.kill(away)
    scene.send(30, 30)
    assert scene.producer.flush(1) > 0, "the records wait for the third replica"
    cluster.restart(away)
    scene.producer.flush(60)
    assert len(scene.acknowledged) == 60
    assert sorted(set(map(int, scene.read()))) == list(range(60))
