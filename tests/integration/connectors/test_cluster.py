"""MirrorMaker 2's connectors in a worker: records, offsets of groups and heartbeats from another cluster."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from moldau.client.admin.client import AdminClient, checked
from moldau.client.admin.topic_types import NewTopic
from moldau.pipelines.mirror.records.heartbeat import read_heartbeat
from moldau.testing import Cluster
from tests.harness.connect import Worker
from tests.harness.mirror import Feed, produce, read_all, values_of
from tests.harness.waiting import eventually
from tests.integration.connect.conftest import group_properties

_MIRROR = "org.apache.kafka.connect.mirror."


@pytest.fixture(scope="module")
def other() -> Iterator[Cluster]:
    with Cluster() as cluster:
        yield cluster


@pytest.fixture
def worker(bootstrap: str, group: str, tmp_path: Path) -> Iterator[Worker]:
    properties = group_properties(bootstrap, group)
    with Worker(tmp_path, properties, command="connect-distributed") as started:
        yield started


@pytest.fixture
def group() -> str:
    return "mirror-connectors"


def config(kind: str, source: Cluster, target: str, **settings: str) -> dict[str, str]:
    given = {name.replace("_", "."): value for name, value in settings.items()}
    return {
        "connector.class": f"{_MIRROR}{kind}",
        "source.cluster.alias": "us",
        "source.cluster.bootstrap.servers": source.bootstrap_servers,
        "target.cluster.alias": "eu",
        "target.cluster.bootstrap.servers": target,
        "replication.factor": "1",
        "offset-syncs.topic.replication.factor": "1",
        "checkpoints.topic.replication.factor": "1",
        "heartbeats.topic.replication.factor": "1",
        "refresh.topics.interval.seconds": "0.3",
        "refresh.groups.interval.seconds": "0.3",
        "emit.checkpoints.interval.seconds": "0.3",
        "sync.group.offsets.interval.seconds": "0.3",
        **given,
    }


def committed(bootstrap: str, group: str, topic: str) -> int:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    try:
        return int(consumer.committed([TopicPartition(topic, 0)], timeout=10)[0].offset)
    finally:
        consumer.close()


def test_no_record_is_missing_after_kill_9(bootstrap: str, other: Cluster, worker: Worker) -> None:
    def offsets() -> list[Any]:
        return list(worker.api("GET", "/connectors/copy/offsets").body["offsets"])

    source = other.bootstrap_servers
    with AdminClient(source) as admin:
        checked(admin.create_topics([NewTopic("orders", 1, configs={"retention.ms": "7200000"})]))
    feed = Feed(source, "orders")
    try:
        worker.create("copy", config("MirrorSourceConnector", other, bootstrap, topics="orders"))
        worker.wait_for("copy")
        for _ in range(2):
            eventually(lambda: offsets() and offsets()[0]["offset"]["offset"] > 100, what=worker.log)
            worker.kill()
            worker.start()
    finally:
        produced = feed.stop()
    where = {"cluster": "us", "partition": 0, "topic": "orders"}
    end = len(produced) - 1
    eventually(lambda: offsets() and offsets()[0]["offset"]["offset"] == end, what=worker.log)
    assert [each["partition"] for each in offsets()] == [where]
    assert set(values_of(bootstrap, "us.orders")) == set(produced)

    # Stopped, the offset can be set back; the records after it are copied again.
    before = len(values_of(bootstrap, "us.orders"))
    worker.api("PUT", "/connectors/copy/stop")
    worker.wait_for("copy", "STOPPED", ())
    body = {"offsets": [{"partition": where, "offset": {"offset": end - 10}}]}
    assert worker.api("PATCH", "/connectors/copy/offsets", body).status == 200
    worker.api("PUT", "/connectors/copy/resume")
    eventually(lambda: len(values_of(bootstrap, "us.orders")) == before + 10, what=worker.log)
    worker.api("DELETE", "/connectors/copy")


def test_group_offsets_and_heartbeats_follow(bootstrap: str, other: Cluster, worker: Worker) -> None:
    source = other.bootstrap_servers
    with AdminClient(source) as admin:
        checked(admin.create_topics([NewTopic("events", 1)]))
    produce(source, "events", [str(number) for number in range(100)])
    consumer = Consumer({"bootstrap.servers": source, "group.id": "billing"})
    consumer.commit(offsets=[TopicPartition("events", 0, 40)], asynchronous=False)
    consumer.close()
    topics = {"topics": "events"}
    worker.create("records", config("MirrorSourceConnector", other, bootstrap, **topics))
    worker.create("beats", config("MirrorHeartbeatConnector", other, bootstrap, **topics))
    groups = {"groups": "billing", "sync_group_offsets_enabled": "true"}
    worker.create("groups", config("MirrorCheckpointConnector", other, bootstrap, **topics, **groups))
    eventually(lambda: committed(bootstrap, "billing", "us.events") == 40, what=worker.log)
    eventually(lambda: read_all(bootstrap, "heartbeats"), what=worker.log)
    beat = read_all(bootstrap, "heartbeats")[0]
    assert read_heartbeat(beat.key(), beat.value())[:2] == ("us", "eu")
    worker.wait_for("groups")
    worker.api("PUT", "/connectors/beats/pause")
    worker.wait_for("beats", "PAUSED", ("PAUSED",))
    count = len(read_all(bootstrap, "heartbeats"))
    worker.api("PUT", "/connectors/beats/resume")
    eventually(lambda: len(read_all(bootstrap, "heartbeats")) > count, what=worker.log)


def test_records_are_written_to_another_cluster(bootstrap: str, other: Cluster, worker: Worker) -> None:
    bytes_converter = "org.apache.kafka.connect.converters.ByteArrayConverter"
    with AdminClient(bootstrap) as admin:
        checked(admin.create_topics([NewTopic("to-other", 2)]))
    with AdminClient(other.bootstrap_servers) as admin:
        checked(admin.create_topics([NewTopic("eu.to-other", 2)]))
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(100):
        producer.produce(
            "to-other",
            None if number == 7 else b"\xff%d" % number,
            key=b"k%d" % number,
            partition=number % 2,
            timestamp=1_700_000_000_000 + number,
            headers=[("h", b"x")],
        )
    assert producer.flush(30) == 0
    sink = {
        "connector.class": "moldau.connect.ClusterSinkConnector",
        "topics": "to-other",
        "target.cluster.bootstrap.servers": other.bootstrap_servers,
        "topic.format": "eu.${topic}",
        "partitions.keep": "true",
        "key.converter": bytes_converter,
        "value.converter": bytes_converter,
    }
    worker.create("sink", sink)

    def content(bootstrap: str, topic: str, partition: int) -> list[Any]:
        found = read_all(bootstrap, topic, partition)
        return [(each.key(), each.value(), each.timestamp(), each.headers()) for each in found]

    for partition in (0, 1):
        written = content(bootstrap, "to-other", partition)
        eventually(
            lambda number=partition: len(content(other.bootstrap_servers, "eu.to-other", number)) == 50,
            what=worker.log,
        )
        assert content(other.bootstrap_servers, "eu.to-other", partition) == written
    committed_offsets = lambda: worker.api("GET", "/connectors/sink/offsets").body["offsets"]  # noqa: E731
    eventually(lambda: {each["offset"]["kafka_offset"] for each in committed_offsets()} == {50})
