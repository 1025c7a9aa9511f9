"""SASL SCRAM over real sockets: three client libraries, and the nodes among themselves."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import (
    AdminClient,
    NewTopic,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from kafka import KafkaConsumer, KafkaProducer

from moldau.testing import Cluster
from tests.harness.nodes.sasl import (
    ADMIN,
    ADMIN_PASSWORD,
    CLIENT_PREFIX,
    SCRAM_JAAS,
    kwargs,
    librdkafka,
    sasl_config,
    start_several,
)
from tests.harness.waiting import eventually

MECHANISMS = {"SCRAM-SHA-256": ScramMechanism.SCRAM_SHA_256, "SCRAM-SHA-512": ScramMechanism.SCRAM_SHA_512}
USER, PASSWORD = "carol", "carol-sécret=,1"

both = pytest.mark.parametrize("mechanism", list(MECHANISMS))


def administrator(cluster: Cluster) -> AdminClient:
    return AdminClient(librdkafka(cluster.bootstrap_servers, user=ADMIN, password=ADMIN_PASSWORD))


def add_user(cluster: Cluster, mechanism: str, user: str = USER, password: str = PASSWORD) -> None:
    info = ScramCredentialInfo(MECHANISMS[mechanism], 4096)
    change = UserScramCredentialUpsertion(user, info, password.encode())
    admin = administrator(cluster)
    admin.alter_user_scram_credentials([change])[user].result(30)


def may_log_in(cluster: Cluster, mechanism: str, user: str, password: str) -> bool:
    client = AdminClient({**librdkafka(cluster.bootstrap_servers, mechanism, user, password), "log_level": 0})
    try:
        return bool(client.list_topics(timeout=2).brokers)
    except KafkaException:
        return False


@pytest.fixture(scope="module")
def node() -> Iterator[Cluster]:
    config = sasl_config(f"PLAIN,{','.join(MECHANISMS)}")
    with Cluster(config=config) as cluster:
        for mechanism in MECHANISMS:
            add_user(cluster, mechanism)
        yield cluster


@both
def test_confluent_kafka_logs_in(node: Cluster, mechanism: str, topic: str) -> None:
    producer = Producer(librdkafka(node.bootstrap_servers, mechanism, USER, PASSWORD))
    errors: list[object] = []
    producer.produce(topic, b"value", on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(30) == 0
    assert errors == [None]


@both
def test_kafka_python_logs_in(node: Cluster, mechanism: str, topic: str) -> None:
    arguments = kwargs(node.bootstrap_servers, mechanism, USER, PASSWORD)
    producer = KafkaProducer(**arguments)
    producer.send(topic, b"value").get(30)
    producer.close()
    consumer = KafkaConsumer(topic, auto_offset_reset="earliest", consumer_timeout_ms=30_000, **arguments)
    assert next(consumer).value == b"value"
    consumer.close()


@both
def test_aiokafka_logs_in(node: Cluster, mechanism: str, topic: str) -> None:
    arguments = kwargs(node.bootstrap_servers, mechanism, USER, PASSWORD)

    async def work() -> bytes | None:
        async with AIOKafkaProducer(**arguments) as producer:
            await producer.send_and_wait(topic, b"value")
        async with AIOKafkaConsumer(topic, auto_offset_reset="earliest", **arguments) as consumer:
            return (await consumer.getone()).value

    assert asyncio.run(asyncio.wait_for(work(), 60)) == b"value"


@pytest.mark.parametrize(
    ("mechanism", "user", "password"),
    [("SCRAM-SHA-256", USER, "wrong"), ("SCRAM-SHA-512", "nobody", PASSWORD), ("PLAIN", USER, PASSWORD)],
)
def test_other_credentials_are_refused(node: Cluster, mechanism: str, user: str, password: str) -> None:
    assert not may_log_in(node, mechanism, user, password)


def test_a_changed_password_and_a_deleted_user_take_effect_at_once(node: Cluster) -> None:
    mechanism = "SCRAM-SHA-256"
    add_user(node, mechanism, "dave", "first")
    eventually(lambda: may_log_in(node, mechanism, "dave", "first"), what="the user logs in")
    add_user(node, mechanism, "dave", "second")
    eventually(lambda: may_log_in(node, mechanism, "dave", "second"), what="the new password works")
    assert not may_log_in(node, mechanism, "dave", "first")
    deletion = UserScramCredentialDeletion("dave", MECHANISMS[mechanism])
    admin = administrator(node)
    admin.alter_user_scram_credentials([deletion])["dave"].result(30)
    eventually(lambda: not may_log_in(node, mechanism, "dave", "second"), what="the user is gone")


def test_brokers_log_in_to_each_other_with_scram(topic: str) -> None:
    """As users migrate: PLAIN first, then a SCRAM user for the brokers and a rolling restart."""
    jaas = SCRAM_JAAS.replace(";", ' username="node" password="n";')
    config = sasl_config(
        "PLAIN,SCRAM-SHA-512",
        extra={f"{CLIENT_PREFIX}scram-sha-512.sasl.jaas.config": jaas},
    )
    changes: dict[int, dict[str, str | int | bool]] = {1: {}, 2: {}, 3: {}}
    cluster = Cluster(brokers=3, config=config, node_config=changes)
    try:
        start_several(cluster)
        add_user(cluster, "SCRAM-SHA-512", "node", "n")
        for node_id, change in changes.items():
            change["sasl.mechanism.inter.broker.protocol"] = "SCRAM-SHA-512"
            cluster.node(node_id).restart()
        producer = Producer({**librdkafka(cluster.bootstrap_servers), "acks": "all"})
        admin = administrator(cluster)
        admin.create_topics([NewTopic(topic, 3, 3)])[topic].result(30)
        errors: list[object] = []
        for partition in range(3):
            producer.produce(
                topic, b"v", partition=partition, on_delivery=lambda error, _: errors.append(error)
            )
        assert producer.flush(30) == 0
        assert errors == [None] * 3
    finally:
        cluster.close()
