"""Sessions that end (KIP-368): re-authentication by hand, by librdkafka and by the nodes themselves."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from moldau.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from moldau.testing import Cluster
from tests.harness.nodes.sasl import CLIENT_PREFIX, CONTROLLER_PREFIX, librdkafka, sasl_config, start_several
from tests.harness.wire.wire import Wire
from tests.integration.sasl.test_login_rules import (
    METADATA,
    SASL_AUTHENTICATION_FAILED,
    handshake,
    log_in,
)


@pytest.fixture(scope="module")
def expiring() -> Iterator[Cluster]:
    config = sasl_config(extra={f"{CLIENT_PREFIX}plain.connections.max.reauth.ms": 1500})
    with Cluster(config=config) as cluster:
        yield cluster


def test_a_client_that_does_not_reauthenticate_is_cut_at_its_next_request(expiring: Cluster) -> None:
    with Wire(expiring.bootstrap_servers, timeout=20) as wire:
        assert log_in(wire) == 1500
        assert wire.call(METADATA, 12).brokers
        assert wire.is_silent_for(1.8), "not by a timer"
        wire.post(METADATA, 12)
        assert wire.is_closed_by_peer()


def test_a_client_reauthenticates(expiring: Cluster) -> None:
    with Wire(expiring.bootstrap_servers, timeout=20) as wire:
        log_in(wire)
        for _ in range(2):
            assert wire.is_silent_for(1.1)
            assert log_in(wire) == 1500
            assert wire.call(METADATA, 12).brokers


def test_another_user_cannot_take_over_a_connection(expiring: Cluster) -> None:
    with Wire(expiring.bootstrap_servers, timeout=20) as wire:
        log_in(wire)
        assert handshake(wire) == 0
        answer = wire.call(SaslAuthenticateRequest(auth_bytes=b"\0bob\0bob-secret"), 2)
        assert answer.error_code == SASL_AUTHENTICATION_FAILED
        assert "Cannot change principals" in answer.error_message
        assert wire.is_closed_by_peer()


def test_confluent_kafka_reauthenticates(expiring: Cluster, topic: str) -> None:
    """More than three sessions on one connection, without a lost record."""

    errors: list[object] = []
    producer = Producer({**librdkafka(expiring.bootstrap_servers), "error_cb": errors.append})
    delivered: list[int] = []
    end = time.monotonic() + 5
    while time.monotonic() < end:
        producer.produce(topic, b"value", on_delivery=lambda error, _: delivered.append(0 if error else 1))
        producer.flush(20)
        producer.poll(0.05)
    assert all(delivered) and len(delivered) > 10
    assert errors == []


def test_nodes_reauthenticate_among_themselves(topic: str) -> None:
    """The connections of a node to others are used beyond several sessions."""

    name = "plain.connections.max.reauth.ms"
    config = sasl_config(
        controller=True, extra={f"{CLIENT_PREFIX}{name}": 1200, f"{CONTROLLER_PREFIX}{name}": 1200}
    )
    cluster = Cluster(brokers=3, config=config)
    try:
        start_several(cluster)
        properties = librdkafka(cluster.bootstrap_servers)
        admin = AdminClient(properties)
        admin.create_topics([NewTopic(topic, 3, 3)])[topic].result(60)
        producer = Producer({**properties, "acks": "all"})
        delivered: list[int] = []
        end = time.monotonic() + 4
        while time.monotonic() < end:
            producer.produce(topic, b"v", on_delivery=lambda error, _: delivered.append(0 if error else 1))
            producer.flush(20)
            producer.poll(0.05)
        assert all(delivered)
        for node in cluster.nodes:
            assert "session has ended" not in node.log_file.read_text()
    finally:
        cluster.close()
