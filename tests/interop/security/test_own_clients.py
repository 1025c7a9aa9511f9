"""Our clients and `moldau doctor` at a secured node of Apache Kafka, and at one of Moldau."""

from __future__ import annotations

import time
import uuid

import pytest

from moldau.base.ids import TopicPartition
from moldau.cli.moldau.doctor.diagnosis import diagnose
from moldau.cli.moldau.doctor.findings import Finding, Level
from moldau.cli.moldau.doctor.permissions import Checked
from moldau.client import AdminClient, NewTopic, Producer, checked
from moldau.client.batches.reader import OffsetRange, read_batches
from moldau.client.batches.writer import BatchWriter
from moldau.client.wire.settings import ClientSettings
from moldau.network.failures import LoginFailed, TlsFailed
from moldau.protocol.records import Record, build_batch
from tests.harness.security.client_settings import Way, java_settings
from tests.harness.security.secured_node import MECHANISMS, SASL_LISTENERS, SESSION_MS, SecuredNode

pytestmark = pytest.mark.interop

SASL_WAYS = [Way(listener, mechanism) for listener in SASL_LISTENERS for mechanism in MECHANISMS]
TLS_WAYS = [Way("JKS"), Way("PKCS12"), Way("PEM")]


def problems(properties: dict[str, str], *permissions: Checked) -> list[Finding]:
    found = diagnose(properties["bootstrap.servers"], properties=properties, checked=permissions)
    return [each for each in found if each.level is Level.PROBLEM]


@pytest.mark.parametrize("way", SASL_WAYS, ids=str)
def test_clients_log_in_with_every_mechanism(secured: SecuredNode, way: Way) -> None:
    properties = java_settings(secured, way, "admin")
    topic = f"own-{uuid.uuid4().hex[:8]}"
    with AdminClient(properties) as admin:
        checked(admin.create_topics([NewTopic(topic, partitions=1)]))
    with Producer(properties) as producer:
        assert producer.send(topic, b"librdkafka").result(30).offset == 0
    settings = ClientSettings.from_properties(properties)
    writer = BatchWriter(settings)
    writer.write([(TopicPartition(topic, 0), bytearray(build_batch([Record(0, 0, None, b"own")])))])
    writer.flush()
    writer.close()
    assert list(read_batches(settings, OffsetRange(TopicPartition(topic, 0), start=0, end=2)))
    assert problems(properties, Checked.topic(topic), Checked.group("own")) == []


@pytest.mark.parametrize("way", TLS_WAYS, ids=str)
def test_clients_show_their_certificate(secured: SecuredNode, way: Way) -> None:
    properties = java_settings(secured, way)
    with AdminClient(properties) as admin:
        assert admin.describe_cluster().nodes
    assert problems(properties) == []


def test_sessions_are_renewed(secured: SecuredNode) -> None:
    properties = java_settings(secured, Way("SESSIONS", "PLAIN"), "admin") | {
        "security.protocol": "SASL_PLAINTEXT"
    }
    with AdminClient(properties) as admin:
        begin, connections = time.monotonic(), set()
        while time.monotonic() - begin < 2 * SESSION_MS / 1000:
            admin.describe_cluster()
            connections |= {id(each) for each in admin.client.cluster._connections.values()}
    assert len(connections) == 1


@pytest.mark.parametrize(
    ("listener", "client", "sentence"),
    [
        ("SASL_SSL", Way("SASL_PLAINTEXT", "PLAIN"), "speaks TLS"),
        ("PEM", Way("SASL_SSL", "PLAIN"), "does not use SASL"),
        ("SASL_PLAINTEXT", Way("SASL_SSL", "PLAIN"), "speaks SASL_PLAINTEXT, without TLS"),
        ("SASL_SSL", Way("PEM"), "requires SASL authentication (PLAIN"),
    ],
)
def test_doctor_finds_the_protocol_of_a_listener(
    secured: SecuredNode, listener: str, client: Way, sentence: str
) -> None:
    properties = java_settings(secured, client) | {"bootstrap.servers": secured.address(listener)}
    (found,) = problems(properties)
    assert sentence in found.what


def test_refused_logins_are_explained(secured: SecuredNode) -> None:
    for mechanism in ("PLAIN", "SCRAM-SHA-256"):
        properties = java_settings(secured, Way("SASL_SSL", mechanism), "alice", "not-the-word")
        with AdminClient(properties) as admin, pytest.raises(LoginFailed):
            admin.describe_cluster()
        (found,) = problems(properties)
        assert f"refused the login with {mechanism}" in found.what
    sessions = java_settings(secured, Way("SESSIONS", "SCRAM-SHA-512")) | {
        "security.protocol": "SASL_PLAINTEXT"
    }
    (found,) = problems(sessions)
    assert "has not enabled the SASL mechanism SCRAM-SHA-512; enabled are" in found.what


def test_missing_client_certificate_is_explained(secured: SecuredNode) -> None:
    properties = java_settings(secured, Way("SASL_SSL", "PLAIN")) | {
        "bootstrap.servers": secured.address("JKS"),
        "security.protocol": "SSL",
    }
    with AdminClient(properties) as admin, pytest.raises(TlsFailed, match="certificate"):
        admin.describe_cluster()
    (found,) = problems(properties)
    assert "ssl.keystore.location" in (found.advice or "")


def test_missing_acls_are_named(secured: SecuredNode) -> None:
    properties = java_settings(secured, Way("SASL_SSL", "SCRAM-SHA-512"), "eve")
    found = problems(properties, Checked.topic("secret"), Checked.group("hidden"))
    assert [each.what.partition(": ")[2] for each in found] == [
        "WRITE on TOPIC secret is missing.",
        "READ on TOPIC secret is missing.",
        "READ on GROUP hidden is missing.",
    ]
