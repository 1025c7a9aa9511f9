"""Clients of all makers produce and consume over TLS, with and without a certificate of their own."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import aiokafka
import confluent_kafka
import kafka
import pytest

from moldau.testing import Cluster
from tests.harness.security.certificates import Certificates

LISTENERS = {"listener.security.protocol.map": "PLAINTEXT:SSL,CONTROLLER:SSL"}
RECORDS = [f"record {number}".encode() * 10 for number in range(100)]


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module", params=["none", "required"])
def node(request: pytest.FixtureRequest, certificates: Certificates) -> Iterator[tuple[str, bool]]:
    """The address of a node whose listeners have TLS, and whether clients need a certificate."""
    config = {**LISTENERS, **certificates.server_properties(request.param)}
    with Cluster(config=config) as cluster:
        yield cluster.bootstrap_servers, request.param == "required"


def test_librdkafka(node: tuple[str, bool], certificates: Certificates) -> None:
    address, mutual = node
    configs = {"bootstrap.servers": address, **certificates.librdkafka(mutual=mutual)}
    producer = confluent_kafka.Producer(configs)
    for record in RECORDS:
        producer.produce("librdkafka", record)
    assert producer.flush(20) == 0
    consumer = confluent_kafka.Consumer({**configs, "group.id": "g", "auto.offset.reset": "earliest"})
    consumer.subscribe(["librdkafka"])
    found = consumer.consume(len(RECORDS), timeout=20)
    consumer.close()
    assert [message.value() for message in found] == RECORDS


def test_kafka_python(node: tuple[str, bool], certificates: Certificates) -> None:
    address, mutual = node
    configs = {
        "bootstrap_servers": address,
        "security_protocol": "SSL",
        "ssl_context": certificates.python(mutual=mutual),
    }
    producer = kafka.KafkaProducer(**configs)
    for record in RECORDS:
        producer.send("kafka-python", record)
    producer.flush(20)
    producer.close()
    consumer = kafka.KafkaConsumer(
        "kafka-python", auto_offset_reset="earliest", consumer_timeout_ms=20_000, **configs
    )
    found = [record.value for _, record in zip(RECORDS, consumer, strict=False)]
    consumer.close()
    assert found == RECORDS


def test_aiokafka(node: tuple[str, bool], certificates: Certificates) -> None:
    address, mutual = node
    configs = {
        "bootstrap_servers": address,
        "security_protocol": "SSL",
        "ssl_context": certificates.python(mutual=mutual),
    }

    async def produce_and_consume() -> list[bytes]:
        async with aiokafka.AIOKafkaProducer(**configs) as producer:
            for record in RECORDS:
                await producer.send("aiokafka", record)
        async with aiokafka.AIOKafkaConsumer("aiokafka", auto_offset_reset="earliest", **configs) as consumer:
            async with asyncio.timeout(20):
                return [(await consumer.getone()).value for _ in RECORDS]

    assert asyncio.run(produce_and_consume()) == RECORDS
