"""SASL PLAIN over real sockets: three client libraries, and the nodes among themselves."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.errors import KafkaConnectionError
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
from kafka.errors import KafkaTimeoutError

from moldau.testing import Cluster
from tests.harness.nodes.sasl import (
    ADMIN_PASSWORD,
    PASSWORD,
    kwargs,
    librdkafka,
    sasl_config,
    start_several,
)
from tests.harness.waiting import eventually


@pytest.fixture(scope="module")
def node() -> Iterator[Cluster]:
    with Cluster(config=sasl_config()) as cluster:
        yield cluster


def test_confluent_kafka_produces_and_consumes(node: Cluster, topic: str) -> None:
    properties = librdkafka(node.bootstrap_servers)
    producer = Producer(properties)
    failures: list[KafkaError] = []
    for n in range(10):
        producer.produce(topic, f"value {n}", on_delivery=lambda error, _: error and failures.append(error))
    assert producer.flush(60) == 0
    assert not failures
    consumer = Consumer({**properties, "group.id": topic, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    values: list[bytes] = []

    def read() -> bool:
        values.extend(message.value() for message in consumer.consume(10, 1) if not message.error())
        return len(values) == 10

    eventually(read, what="all records are read")
    consumer.close()


def test_kafka_python_produces_and_consumes(node: Cluster, topic: str) -> None:
    arguments = kwargs(node.bootstrap_servers)
    producer = KafkaProducer(**arguments)
    producer.send(topic, b"value").get(60)
    producer.close()
    consumer = KafkaConsumer(topic, auto_offset_reset="earliest", consumer_timeout_ms=60_000, **arguments)
    assert next(consumer).value == b"value"
    consumer.close()


def test_aiokafka_produces_and_consumes(node: Cluster, topic: str) -> None:
    arguments = kwargs(node.bootstrap_servers)

    async def work() -> bytes | None:
        async with AIOKafkaProducer(**arguments) as producer:
            await producer.send_and_wait(topic, b"value")
        async with AIOKafkaConsumer(topic, auto_offset_reset="earliest", **arguments) as consumer:
            return (await consumer.getone()).value

    assert asyncio.run(asyncio.wait_for(work(), 60)) == b"value"


def test_confluent_kafka_reports_a_wrong_password(node: Cluster) -> None:
    reported: list[KafkaError] = []
    client = AdminClient(
        {**librdkafka(node.bootstrap_servers, password="wrong"), "error_cb": reported.append}
    )

    def refused() -> bool:
        client.poll(0.1)
        return any(error.code() == KafkaError._AUTHENTICATION for error in reported)

    eventually(refused, what="the wrong password is reported")
    assert any("Invalid username or password" in error.str() for error in reported)


def test_kafka_python_reports_a_wrong_password(node: Cluster, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(KafkaTimeoutError):
        KafkaAdminClient(**kwargs(node.bootstrap_servers, password="wrong"), bootstrap_timeout_ms=1000)
    assert "Authentication failed: Invalid username or password" in caplog.text


def test_aiokafka_reports_a_wrong_password(node: Cluster, caplog: pytest.LogCaptureFixture) -> None:
    async def work() -> None:
        producer = AIOKafkaProducer(**kwargs(node.bootstrap_servers, password="wrong"))
        try:
            await producer.start()
        finally:
            await producer.stop()

    with pytest.raises(KafkaConnectionError):
        asyncio.run(asyncio.wait_for(work(), 60))
    assert "Authentication failed: Invalid username or password" in caplog.text


def test_a_client_without_sasl_is_not_served(node: Cluster) -> None:
    client = AdminClient({"bootstrap.servers": node.bootstrap_servers})
    with pytest.raises(Exception, match=r"_TRANSPORT|timed out|broker"):
        client.list_topics(timeout=3)


def test_nodes_log_in_to_each_other(topic: str) -> None:
    """All listeners use SASL: registration, forwarding, replication and the metadata quorum depend on it."""
    cluster = Cluster(brokers=3, config=sasl_config(controller=True))
    try:
        start_several(cluster)
        properties = librdkafka(cluster.bootstrap_servers)
        admin = AdminClient(properties)
        admin.create_topics([NewTopic(topic, 3, 3)])[topic].result(60)
        producer = Producer({**properties, "acks": "all"})
        failures: list[KafkaError] = []
        for n in range(30):
            producer.produce(
                topic,
                f"value {n}",
                partition=n % 3,
                on_delivery=lambda error, _: error and failures.append(error),
            )
        assert producer.flush(60) == 0
        assert not failures
        cluster.kill(3)

        def is_served_by_the_others() -> bool:
            try:
                partitions = admin.list_topics(topic, timeout=10).topics[topic].partitions
            except KafkaException:
                # librdkafka retries a request at the broker that it had chosen, which may be the killed one.
                return False
            return len(partitions) == 3 and all(each.leader in (1, 2) for each in partitions.values())

        eventually(is_served_by_the_others, what="new leaders are elected")
        assert_no_secret_in_logs(cluster)
    finally:
        cluster.close()


def test_a_node_with_a_wrong_password_of_its_own_does_not_join(topic: str) -> None:
    config = sasl_config(controller=True)
    wrong = str(config["listener.name.controller.plain.sasl.jaas.config"]).replace(
        f'password="{ADMIN_PASSWORD}" user', 'password="wrong" user'
    )
    cluster = Cluster(
        brokers=1,
        controllers=1,
        config=config,
        node_config={
            1: {
                "listener.name.controller.plain.sasl.jaas.config": wrong,
                "initial.broker.registration.timeout.ms": 3000,
            }
        },
    )
    try:
        cluster.node(2).start()
        cluster.node(1).start(wait=False)
        log = cluster.node(1).log_file
        eventually(
            lambda: log.exists() and "Invalid username or password" in log.read_text(),
            what="the reason is in the log",
        )
        assert_no_secret_in_logs(cluster)
    finally:
        cluster.close()


def assert_no_secret_in_logs(cluster: Cluster) -> None:
    files: list[Path] = [node.log_file for node in cluster.nodes if node.log_file.exists()]
    for text in (file.read_text() for file in files):
        assert PASSWORD not in text
        assert ADMIN_PASSWORD not in text
