"""Apache Kafka and Moldau in one cluster with SASL_SSL: each is restarted and replaced while a client writes.

Brokers log in to each other with PLAIN or SCRAM and to the controllers with PLAIN, over TLS with verified
host names. ACLs are enforced, and the brokers are super users.
"""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from moldau.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.harness.apache.mixed_nodes import APACHE, MOLDAU, MixedNodes
from tests.harness.security.keytool import Stores
from tests.harness.security.login import log_in
from tests.harness.security.secured_node import ADMIN, AUTHORIZER, USERS, jaas, scram_options
from tests.harness.waiting import eventually
from tests.harness.wire.wire import Wire

pytestmark = [pytest.mark.interop, pytest.mark.timeout(400)]

_TOPIC = "moving"
_PARTITIONS = 3
_QUIET = {"log_level": 0}


def _config(stores: Stores, inter_broker: str) -> dict[str, str | int | bool]:
    """Return the properties of all nodes; `inter_broker` is the mechanism between brokers."""
    mechanisms = ("PLAIN", "SCRAM-SHA-512")
    prefix = "listener.name.sasl_ssl."
    return {
        "listener.security.protocol.map": "SASL_SSL:SASL_SSL,CONTROLLER:SASL_SSL",
        "inter.broker.listener.name": "SASL_SSL",
        "sasl.enabled.mechanisms": ",".join(mechanisms),
        "sasl.mechanism.inter.broker.protocol": inter_broker,
        "sasl.mechanism.controller.protocol": "PLAIN",
        "listener.name.controller.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.controller.plain.sasl.jaas.config": jaas("PLAIN", server=True),
        **{f"{prefix}{each.lower()}.sasl.jaas.config": jaas(each, server=True) for each in mechanisms},
        **stores.settings("broker", "PKCS12"),
        "authorizer.class.name": AUTHORIZER,
        "super.users": f"User:{ADMIN}",
        "offsets.topic.num.partitions": 3,
        "min.insync.replicas": 2,
    }


class _Client:
    """Settings of librdkafka for a user."""

    def __init__(self, nodes: MixedNodes, stores: Stores, user: str, mechanism: str) -> None:
        self.settings: dict[str, Any] = {
            "bootstrap.servers": nodes.bootstrap_servers,
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": mechanism,
            "sasl.username": user,
            "sasl.password": USERS[user],
            "ssl.ca.location": str(stores.trust("PEM")),
            **_QUIET,
        }

    def admin(self) -> AdminClient:
        return AdminClient(self.settings)

    def may_describe(self, broker: str) -> bool:
        """Return whether a broker lets the user see the topic."""
        tls = ssl.create_default_context(cafile=self.settings["ssl.ca.location"])
        with log_in(Wire(broker, timeout=30, tls=tls), self.settings["sasl.username"]) as wire:
            answer = wire.call(MetadataRequest(topics=[MetadataRequestTopic(name=_TOPIC)]), 9)
        return bool(answer.topics[0].error_code == 0)

    def in_sync(self) -> bool:
        topic = self.admin().list_topics(_TOPIC, timeout=30).topics[_TOPIC]
        return all(len(each.isrs) == 3 for each in topic.partitions.values())

    def read(self, ends: dict[int, int]) -> dict[int, dict[int, bytes]]:
        """Return the records of each partition up to `ends`."""
        found: dict[int, dict[int, bytes]] = {partition: {} for partition in ends}
        consumer = Consumer({**self.settings, "group.id": "reader", "enable.auto.commit": False})
        consumer.assign([TopicPartition(_TOPIC, partition, OFFSET_BEGINNING) for partition in ends])

        def complete() -> bool:
            for message in consumer.consume(500, timeout=0.5):
                assert message.error() is None, message.error()
                found[int(message.partition() or 0)][int(message.offset() or 0)] = message.value() or b""
            return all(max(found[partition], default=-1) >= end - 1 for partition, end in ends.items())

        eventually(complete, timeout=60, what="all records are read")
        consumer.close()
        return found


class _Writer:
    """Write continuously and record the acknowledgements."""

    def __init__(self, client: _Client) -> None:
        self._producer = Producer({**client.settings, "enable.idempotence": True, "linger.ms": 5})
        self.acknowledged: dict[int, dict[int, bytes]] = {}
        self.errors: list[KafkaError] = []
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    @property
    def count(self) -> int:
        return sum(map(len, list(self.acknowledged.values())))

    def progress(self) -> None:
        before = self.count
        eventually(lambda: self.count > before + 50, timeout=60, what="records are acknowledged")

    def stop(self) -> None:
        self._ended.set()
        self._thread.join(60)
        assert self._producer.flush(60) == 0

    def _run(self) -> None:
        number = 0
        while not self._ended.wait(0.005):
            value, partition = str(number).encode(), number % _PARTITIONS
            self._producer.produce(_TOPIC, value, partition=partition, on_delivery=self._delivered)
            self._producer.poll(0)
            number += 1

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.errors.append(error)
        elif (offset := message.offset()) is not None and offset >= 0:
            records = self.acknowledged.setdefault(int(message.partition() or 0), {})
            records[int(offset)] = bytes(message.value() or b"")


@contextmanager
def _cluster(
    software: dict[int, str], libs: Path, stores: Stores, inter_broker: str
) -> Iterator[tuple[MixedNodes, _Client]]:
    """Start a cluster with the topic, which `alice` may write and read."""
    nodes = MixedNodes(
        software,
        libs,
        _config(stores, inter_broker),
        broker_listener="SASL_SSL",
        format_options=scram_options(),
    )
    with nodes:
        admin = _Client(nodes, stores, ADMIN, "PLAIN").admin()
        admin.poll(0)
        eventually(lambda: len(admin.list_topics(timeout=30).brokers) == 3, what="three brokers")
        admin.create_topics([NewTopic(_TOPIC, _PARTITIONS, 3)])[_TOPIC].result(60)
        bindings = [
            AclBinding(
                kind, "*", ResourcePatternType.LITERAL, "User:alice", "*", operation, AclPermissionType.ALLOW
            )
            for kind, operation in (
                (ResourceType.TOPIC, AclOperation.READ),
                (ResourceType.TOPIC, AclOperation.WRITE),
                (ResourceType.GROUP, AclOperation.READ),
            )
        ]
        for created in admin.create_acls(bindings).values():
            created.result(30)
        client = _Client(nodes, stores, "alice", "SCRAM-SHA-512")
        # Brokers apply new ACLs shortly after the answer.
        for broker in nodes.bootstrap_servers.split(","):
            eventually(lambda address=broker: client.may_describe(address), what=f"{broker} knows the ACLs")
        yield nodes, client


def _check(client: _Client, writer: _Writer) -> None:
    """Check that every acknowledged record is stored once, in the order it was sent."""
    assert writer.errors == []
    stored = client.read({partition: max(each) + 1 for partition, each in writer.acknowledged.items()})
    for partition, records in writer.acknowledged.items():
        assert records.items() <= stored[partition].items()
        numbers = [int(value) for _, value in sorted(stored[partition].items())]
        assert numbers == sorted(set(numbers))


@pytest.mark.parametrize("inter_broker", ["PLAIN", "SCRAM-SHA-512"])
def test_a_secured_mixed_cluster_serves_clients_while_each_node_is_restarted(
    inter_broker: str, libs: Path, key_stores: Stores
) -> None:
    software = {1: MOLDAU, 2: APACHE, 3: MOLDAU}
    with _cluster(software, libs, key_stores, inter_broker) as (nodes, client):
        writer = _Writer(client)
        try:
            writer.progress()
            for node, kind in software.items():
                nodes.replace(node, kind, kill=node == 1)
                eventually(client.in_sync, timeout=90, every=0.5, what="every replica is in sync")
                writer.progress()
        finally:
            writer.stop()
        _check(client, writer)


@pytest.mark.parametrize(
    "journey", [(APACHE, MOLDAU), (MOLDAU, APACHE)], ids=["to Moldau", "to Apache Kafka"]
)
def test_a_secured_cluster_is_migrated_node_by_node(
    journey: tuple[str, str], libs: Path, key_stores: Stores
) -> None:
    first, then = journey
    with _cluster(dict.fromkeys((1, 2, 3), first), libs, key_stores, "SCRAM-SHA-512") as (nodes, client):
        writer = _Writer(client)
        try:
            writer.progress()
            for node in (1, 2, 3):
                nodes.replace(node, then)
                eventually(client.in_sync, timeout=90, every=0.5, what="every replica is in sync")
                writer.progress()
        finally:
            writer.stop()
        _check(client, writer)
