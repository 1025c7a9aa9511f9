"""librdkafka, kafka-python, aiokafka and franz-go with every mechanism, against both brokers.

Each creates a topic (aiokafka by producing to it), produces to it and consumes from it in a group.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from tests.harness.security.client_settings import WAYS, Way, librdkafka_settings, unsecured_token
from tests.harness.security.login import open_prefix
from tests.harness.security.secured_node import USERS, SecuredNode
from tests.interop.go_programs import built

pytestmark = [pytest.mark.interop, pytest.mark.timeout(240)]

COUNT = 20
VALUES = [f"value-{n}".encode() for n in range(COUNT)]
_PATIENCE_SECONDS = 30.0


def _librdkafka(node: SecuredNode, way: Way, topic: str) -> list[bytes]:
    from confluent_kafka import Consumer, Producer
    from confluent_kafka.admin import AdminClient, NewTopic

    settings = librdkafka_settings(node, way)
    admin = AdminClient(settings)
    admin.poll(0)
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(_PATIENCE_SECONDS)
    producer = Producer(settings)
    for value in VALUES:
        producer.produce(topic, value)
    assert producer.flush(_PATIENCE_SECONDS) == 0
    consumer = Consumer({**settings, "group.id": topic, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    found = consumer.consume(COUNT, _PATIENCE_SECONDS)
    consumer.close()
    return [each.value() or b"" for each in found if each.error() is None]


def _python_settings(node: SecuredNode, way: Way) -> dict[str, Any]:
    settings: dict[str, Any] = {
        "bootstrap_servers": node.address(way.listener),
        "security_protocol": way.protocol,
    }
    if way.mechanism:
        settings["sasl_mechanism"] = way.mechanism
    if way.mechanism not in ("", "OAUTHBEARER"):
        settings |= {"sasl_plain_username": "alice", "sasl_plain_password": USERS["alice"]}
    return settings


def _python_certificates(node: SecuredNode, way: Way) -> dict[str, str]:
    if not way.protocol.endswith("SSL"):
        return {}
    files = {"cafile": str(node.stores.trust("PEM"))}
    if way.protocol == "SSL":
        files["certfile"] = str(node.stores.part("client", "chain"))
        files["keyfile"] = str(node.stores.part("client", "key"))
    return files


def _kafka_python(node: SecuredNode, way: Way, topic: str) -> list[bytes]:
    from kafka import KafkaConsumer, KafkaProducer
    from kafka.admin import KafkaAdminClient, NewTopic
    from kafka.net.sasl.oauth import AbstractTokenProvider

    class Token(AbstractTokenProvider):
        def token(self) -> str:
            return unsecured_token("alice")

    certificates = {f"ssl_{name}": file for name, file in _python_certificates(node, way).items()}
    settings = {**_python_settings(node, way), **certificates}
    if way.mechanism == "OAUTHBEARER":
        settings["sasl_oauth_token_provider"] = Token()
    admin = KafkaAdminClient(**settings)
    admin.create_topics([NewTopic(topic, 1, 1)])
    admin.close()
    producer = KafkaProducer(**settings)
    for value in VALUES:
        producer.send(topic, value)
    producer.flush(_PATIENCE_SECONDS)
    producer.close()
    consumer = KafkaConsumer(topic, group_id=topic, auto_offset_reset="earliest", **settings)
    found: list[bytes] = [next(consumer).value for _ in range(COUNT)]
    consumer.close()
    return found


def _aiokafka(node: SecuredNode, way: Way, topic: str) -> list[bytes]:
    return asyncio.run(asyncio.wait_for(_aiokafka_round_trip(node, way, topic), 2 * _PATIENCE_SECONDS))


async def _aiokafka_round_trip(node: SecuredNode, way: Way, topic: str) -> list[bytes]:
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
    from aiokafka.abc import AbstractTokenProvider
    from aiokafka.helpers import create_ssl_context

    class Token(AbstractTokenProvider):
        async def token(self) -> str:
            return unsecured_token("alice")

    settings = _python_settings(node, way)
    if way.protocol.endswith("SSL"):
        settings["ssl_context"] = create_ssl_context(**_python_certificates(node, way))
    if way.mechanism == "OAUTHBEARER":
        settings["sasl_oauth_token_provider"] = Token()
    async with AIOKafkaProducer(**settings) as producer:
        for value in VALUES:
            await producer.send_and_wait(topic, value)
    consumer = AIOKafkaConsumer(topic, group_id=topic, auto_offset_reset="earliest", **settings)
    async with consumer:
        return [(await consumer.getone()).value for _ in range(COUNT)]


CLIENTS: dict[str, Callable[[SecuredNode, Way, str], list[bytes]]] = {
    "librdkafka": _librdkafka,
    "kafka-python": _kafka_python,
    "aiokafka": _aiokafka,
}


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("client", CLIENTS)
def test_python_clients_produce_and_consume(secured: SecuredNode, client: str, way: Way) -> None:
    topic = f"{open_prefix(secured)}{client}"
    assert CLIENTS[client](secured, way, topic) == VALUES


def test_franz_go_produces_and_consumes_with_every_mechanism(secured: SecuredNode) -> None:
    program = built("secured")
    prefix = open_prefix(secured)
    connections = [_franz_go(secured, way, f"{prefix}{number}") for number, way in enumerate(WAYS)]
    done = subprocess.run(
        [program], input=json.dumps(connections), capture_output=True, text=True, timeout=200, check=False
    )
    results = dict(line.split("\t") for line in done.stdout.splitlines())
    assert results == {str(way): "OK" for way in WAYS}, done.stderr


def _franz_go(node: SecuredNode, way: Way, topic: str) -> dict[str, str]:
    certificates = _python_certificates(node, way)
    return {
        "Name": str(way),
        "Bootstrap": node.address(way.listener),
        "Topic": topic,
        "Mechanism": way.mechanism,
        "User": "alice",
        "Password": USERS["alice"],
        "Token": unsecured_token("alice"),
        "Authority": certificates.get("cafile", ""),
        "Certificate": certificates.get("certfile", ""),
        "Key": certificates.get("keyfile", ""),
    }
