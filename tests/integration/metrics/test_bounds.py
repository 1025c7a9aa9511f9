"""Bounds of a scrape: few topics and partitions have samples of their own, and the totals are complete."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.harness.scraping import MeasuredCluster, measured_cluster
from tests.harness.waiting import eventually

MESSAGES = "kafka_server_brokertopicmetrics_messagesin_total"


@pytest.fixture(scope="module")
def bounded() -> Iterator[MeasuredCluster]:
    """A node that shows two topics and five partitions, with four topics of three partitions."""
    config = {
        "metrics.max.topics": 2,
        "metrics.max.partitions": 5,
        "offsets.topic.num.partitions": 1,
        "delete.topic.enable": True,
    }
    with measured_cluster(config=config) as measured:
        servers = {"bootstrap.servers": measured.cluster.bootstrap_servers}
        admin = AdminClient(servers)
        for created in admin.create_topics([NewTopic(f"t{number}", 3, 1) for number in range(4)]).values():
            created.result(30)
        producer = Producer(servers)
        for number in range(4):
            for _ in range(10 * (number + 1)):
                producer.produce(f"t{number}", b"x" * 100, partition=0)
        assert producer.flush(30) == 0
        yield measured


def topics_with(measured: MeasuredCluster, name: str) -> set[str]:
    return {
        sample.labels["topic"]
        for family in measured.families().values()
        for sample in family.samples
        if sample.name == name and "topic" in sample.labels
    }


def test_the_topics_with_the_most_traffic_have_samples(bounded: MeasuredCluster) -> None:
    assert topics_with(bounded, MESSAGES) == {"t2", "t3"}
    assert topics_with(bounded, "kafka_topic_partitions") == {"t2", "t3"}
    assert bounded.value(MESSAGES) >= 100
    assert bounded.value("moldau_metrics_omitted", kind="topics") >= 2
    sizes = bounded.families()["kafka_log_log_size"].samples
    # Three of the topic with the most traffic, the others of the next one.
    assert Counter(each.labels["topic"] for each in sizes) == {"t3": 3, "t2": 2}
    partitions = bounded.value("kafka_server_replicamanager_partitioncount")
    assert bounded.value("moldau_metrics_omitted", kind="partitions") == partitions - 5


def test_two_thousand_partitions_are_served_in_slices() -> None:
    """All have their samples, and the event loop is not blocked for a second."""
    with measured_cluster(config={"offsets.topic.num.partitions": 1}) as measured:
        servers = {"bootstrap.servers": measured.cluster.bootstrap_servers}
        admin = AdminClient(servers)
        admin.create_topics([NewTopic("many", 2000, 1)])["many"].result(60)
        consumer = Consumer({**servers, "group.id": "wide"})
        offsets = [TopicPartition("many", index, 0) for index in range(2000)]
        eventually(lambda: consumer.commit(offsets=offsets, asynchronous=False), timeout=60)
        consumer.close()
        for _ in range(3):
            lines = measured.get("/metrics").body.decode().splitlines()
        for name in ("kafka_log_log_size", "kafka_topic_partition_current_offset"):
            shown = [line for line in lines if line.startswith(f'{name}{{topic="many"')]
            assert len(shown) == len(set(shown)) == 2000
        lags = [line for line in lines if line.startswith('kafka_consumergroup_lag{consumergroup="wide"')]
        assert len(lags) == 2000 and {line.rpartition(" ")[2] for line in lags} == {"0"}
        values = dict(line.rsplit(" ", 1) for line in lines if line.startswith("moldau_"))
        assert values['moldau_metrics_omitted{kind="group_lags"}'] == "0"
        # Bounds that a busy machine keeps, too. How long a scrape takes on an idle one is measured by
        # `make bench`, that it pauses by the unit tests of the collectors.
        assert float(values["moldau_metrics_scrape_seconds"]) < 1
        assert float(values["moldau_event_loop_lag_max_seconds"]) < 1


def test_a_group_with_too_many_partitions_is_left_out(bounded: MeasuredCluster) -> None:
    servers = {"bootstrap.servers": bounded.cluster.bootstrap_servers}
    for group, topics in (("small", 1), ("large", 4)):
        consumer = Consumer({**servers, "group.id": group})
        offsets = [TopicPartition(f"t{topic}", index, 0) for topic in range(topics) for index in range(3)]
        eventually(
            lambda consumer=consumer, offsets=offsets: consumer.commit(offsets=offsets, asynchronous=False)
        )
        consumer.close()
    lags = bounded.families()["kafka_consumergroup_lag"].samples
    assert {sample.labels["consumergroup"] for sample in lags} == {"small"}
    assert bounded.value("moldau_metrics_omitted", kind="group_partitions") == 12
    assert bounded.value("kafka_coordinator_group_groupmetadatamanager_numoffsets") == 15


def test_the_total_keeps_what_a_deleted_topic_has_counted(bounded: MeasuredCluster) -> None:
    before = bounded.value(MESSAGES)
    admin = AdminClient({"bootstrap.servers": bounded.cluster.bootstrap_servers})
    admin.delete_topics(["t3"])["t3"].result(30)
    eventually(lambda: "t3" not in topics_with(bounded, MESSAGES), timeout=20)
    assert bounded.value(MESSAGES) >= before
    assert "t1" in topics_with(bounded, MESSAGES)


def test_many_scrapes_at_once_are_all_complete(bounded: MeasuredCluster) -> None:
    lengths: list[int] = []

    def scrape() -> None:
        text = bounded.get("/metrics", headers={"Accept": "application/openmetrics-text"}).body
        lengths.append(len(text) if text.endswith(b"# EOF\n") else 0)

    threads = [threading.Thread(target=scrape) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(lengths) == 20
    assert min(lengths) > 50_000


def test_groups_without_offsets_are_bounded_too(bounded: MeasuredCluster) -> None:
    servers = {"bootstrap.servers": bounded.cluster.bootstrap_servers, "enable.auto.commit": False}
    consumers = [Consumer({**servers, "group.id": f"idle{number}"}) for number in range(7)]
    groups = "kafka_coordinator_group_groupmetadatamanager_numgroups"
    try:
        for consumer in consumers:
            consumer.subscribe(["t1"])
            consumer.poll(0)
        eventually(lambda: bounded.value(groups) >= 7, timeout=20)
        members = bounded.families()["kafka_consumergroup_members"].samples
        assert 1 <= len(members) <= 5
    finally:
        for consumer in consumers:
            consumer.close()
