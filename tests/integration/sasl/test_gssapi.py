"""SASL GSSAPI with a real MIT Kerberos KDC: third-party clients, our client, and the nodes themselves."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer
from kafka import KafkaConsumer, KafkaProducer

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import TopicPartition
from moldau.cli.moldau.doctor.diagnosis import diagnose
from moldau.cli.moldau.doctor.findings import Level
from moldau.cli.moldau.doctor.permissions import Checked
from moldau.client import AdminClient, NewTopic, checked
from moldau.client.batches.reader import OffsetRange, read_batches
from moldau.client.batches.writer import BatchWriter
from moldau.client.wire.settings import ClientSettings
from moldau.config.definition import ConfigError
from moldau.local.launcher import Launcher
from moldau.network.client import NodeConnection
from moldau.network.connector import ClientSecurity, Connector, SaslLogin
from moldau.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from moldau.protocol.messages.metadata import MetadataRequest
from moldau.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from moldau.protocol.messages.sasl_handshake import SaslHandshakeRequest
from moldau.protocol.records import Record, build_batch
from moldau.security.sasl.clients import sasl_client
from moldau.testing import Cluster, ClusterNode
from tests.harness.nodes.operator import OperatorNode
from tests.harness.security.every_listener import write_properties
from tests.harness.security.kdc import REALM, Kdc, require_kerberos
from tests.harness.tools import run_tool
from tests.harness.waiting import eventually
from tests.harness.wire.wire import Wire

KRB5 = "com.sun.security.auth.module.Krb5LoginModule"
METADATA = MetadataRequest(topics=[])


@pytest.fixture(scope="module")
def kdc(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kdc]:
    require_kerberos()
    running = Kdc(tmp_path_factory.mktemp("kdc")).start()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in running.environment.items():
            patch.setenv(name, value)
        yield running
    running.stop()


def settings(kdc: Kdc) -> dict[str, str | int | bool]:
    """Return the configs of nodes all of whose listeners use Kerberos."""
    keytab = kdc.folder / "kafka-127.0.0.1.keytab"
    if not keytab.exists():
        kdc.add("kafka/127.0.0.1")
    principal = f"kafka/127.0.0.1@{REALM}"
    jaas = f'{KRB5} required useKeyTab=true storeKey=true keyTab="{keytab}" principal="{principal}";'
    return {
        "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "GSSAPI",
        "sasl.mechanism.inter.broker.protocol": "GSSAPI",
        "sasl.mechanism.controller.protocol": "GSSAPI",
        "sasl.kerberos.service.name": "kafka",
        "sasl.kerberos.principal.to.local.rules": "RULE:[1:$1@$0](robot-.*@.*)s/@.*//U,DEFAULT",
        "listener.name.plaintext.gssapi.sasl.jaas.config": jaas,
        "listener.name.controller.gssapi.sasl.jaas.config": jaas,
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:kafka;User:alice",
    }


@pytest.fixture(scope="module")
def node(kdc: Kdc, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OperatorNode]:
    config = {**settings(kdc), "offsets.topic.replication.factor": "1"}
    running = OperatorNode(
        tmp_path_factory.mktemp("node"), {name: str(value) for name, value in config.items()}
    )
    running.format()
    running.start()
    yield running
    running.stop()


def kerberos(node: OperatorNode) -> dict[str, Any]:
    return {
        "bootstrap_servers": node.bootstrap_servers,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "GSSAPI",
        "sasl_kerberos_service_name": "kafka",
    }


def our_client(node: OperatorNode | ClusterNode, options: str, service: str = "kafka") -> Any:
    """Connect with our own client; return a connection."""
    properties = {"sasl.jaas.config": f"{KRB5} required {options};", "sasl.kerberos.service.name": service}
    begin = sasl_client("GSSAPI", properties.get)
    security = ClientSecurity(sasl=SaslLogin("GSSAPI", begin))
    return NodeConnection.connect("127.0.0.1", node.port, connector=Connector(security=security))


def metadata(node: OperatorNode, options: str, service: str = "kafka") -> Any:
    async def work() -> Any:
        connection = await our_client(node, options, service)
        try:
            return await connection.call(METADATA)
        finally:
            connection.close()

    return asyncio.run(work())


def test_kafka_python_logs_in_with_a_ticket(node: OperatorNode, kdc: Kdc, topic: str) -> None:
    kdc.kinit("alice", kdc.add("alice"))
    producer = KafkaProducer(**kerberos(node))
    producer.send(topic, b"value").get(30)
    producer.close()
    consumer = KafkaConsumer(
        topic, auto_offset_reset="earliest", consumer_timeout_ms=30_000, **kerberos(node)
    )
    assert next(consumer).value == b"value"
    consumer.close()


def test_aiokafka_logs_in_with_a_ticket(node: OperatorNode, kdc: Kdc, topic: str) -> None:
    kdc.kinit("alice", kdc.add("alice"))

    async def work() -> None:
        async with AIOKafkaProducer(**kerberos(node), sasl_kerberos_domain_name="127.0.0.1") as producer:
            await producer.send_and_wait(topic, b"value")

    asyncio.run(asyncio.wait_for(work(), 60))


def test_our_client_logs_in_with_a_key_table(node: OperatorNode, kdc: Kdc) -> None:
    keytab = kdc.add("carol")
    options = f'useKeyTab=true keyTab="{keytab}" principal="carol@{REALM}"'
    assert metadata(node, options).brokers


def test_our_client_logs_in_with_a_ticket_cache(node: OperatorNode, kdc: Kdc) -> None:
    kdc.kinit("alice", kdc.add("alice"))
    assert metadata(node, "useTicketCache=true").brokers


@pytest.mark.parametrize("names", ["Kafka's", "librdkafka's"])
def test_clients_tools_and_doctor_log_in_by_properties(
    node: OperatorNode, kdc: Kdc, topic: str, tmp_path: Path, names: str
) -> None:
    keytab, principal = kdc.add("alice"), f"alice@{REALM}"
    login = {
        "Kafka's": {
            "sasl.jaas.config": f'{KRB5} required useKeyTab=true keyTab="{keytab}" principal="{principal}";'
        },
        "librdkafka's": {"sasl.kerberos.keytab": str(keytab), "sasl.kerberos.principal": principal},
    }[names]
    properties = {
        "bootstrap.servers": node.bootstrap_servers,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.kerberos.service.name": "kafka",
        **login,
    }
    with AdminClient(properties) as admin:
        checked(admin.create_topics([NewTopic(topic, partitions=1)]))
    writer = BatchWriter(ClientSettings.from_properties(properties))
    writer.write([(TopicPartition(topic, 0), bytearray(build_batch([Record(0, 0, None, b"value")])))])
    writer.flush()
    writer.close()
    wanted = OffsetRange(TopicPartition(topic, 0), start=0, end=1)
    assert len(list(read_batches(ClientSettings.from_properties(properties), wanted))) == 1
    found = diagnose(node.bootstrap_servers, properties=properties, checked=[Checked.topic(topic)])
    assert {finding.level for finding in found} == {Level.GOOD}
    assert "User:alice may write to" in "".join(finding.what for finding in found)
    file = write_properties(tmp_path / "client.properties", properties)
    listed = run_tool(
        "kafka-topics", "--bootstrap-server", node.bootstrap_servers, "--command-config", file, "--list"
    )
    assert topic in listed.lines


def test_nodes_log_in_to_each_other(kdc: Kdc, monkeypatch: pytest.MonkeyPatch) -> None:
    # A launcher of its own, which has the environment of the KDC.
    monkeypatch.setattr(Launcher, "_shared", {})
    keytab = kdc.add("carol")
    cluster = Cluster(brokers=2, controllers=1, config=settings(kdc))

    async def known_brokers() -> set[int]:
        options = f'useKeyTab=true keyTab="{keytab}" principal="carol@{REALM}"'
        connection = await our_client(cluster.brokers[0], options)
        try:
            return {broker.node_id for broker in (await connection.call(METADATA)).brokers}
        finally:
            connection.close()

    try:
        for each in cluster.nodes:
            each.start(wait=False)
        for each in cluster.nodes:
            each.wait_ready()
        eventually(lambda: asyncio.run(known_brokers()) == {1, 2}, what="both brokers are registered")
    finally:
        cluster.close()


def test_rules_decide_the_name_of_the_principal(node: OperatorNode, kdc: Kdc) -> None:
    """`robot-1@REALM` becomes `ROBOT-1`: its ACL allows what others may not do."""
    alice = f'useKeyTab=true keyTab="{kdc.add("alice")}" principal="alice@{REALM}"'
    robot = f'useKeyTab=true keyTab="{kdc.add("robot-1")}" principal="robot-1@{REALM}"'
    creation = AclCreation(
        resource_type=4,
        resource_name="kafka-cluster",
        resource_pattern_type=3,
        principal="User:ROBOT-1",
        host="*",
        operation=7,
        permission_type=3,
    )
    request = CreateAclsRequest(creations=[creation])

    async def work() -> list[int]:
        codes = []
        for options in (robot, alice, robot):
            connection = await our_client(node, options)
            answer = await connection.call(request)
            codes.append(answer.results[0].error_code)
            connection.close()
        return codes

    assert asyncio.run(work()) == [ErrorCode.CLUSTER_AUTHORIZATION_FAILED, 0, 0]


def test_a_client_without_ticket_is_told_why(node: OperatorNode, tmp_path: Path) -> None:
    with pytest.raises(KafkaError, match="no credentials") as refused:
        metadata(node, f'useTicketCache=true ticketCache="FILE:{tmp_path}/nothing"')
    assert refused.value.code is ErrorCode.SASL_AUTHENTICATION_FAILED


def test_a_ticket_for_another_service_is_refused(node: OperatorNode, kdc: Kdc) -> None:
    kdc.add("other/127.0.0.1")
    kdc.kinit("alice", kdc.add("alice"))
    with pytest.raises(KafkaError, match="invalid credentials with SASL mechanism GSSAPI"):
        metadata(node, "useTicketCache=true", service="other")


@pytest.mark.parametrize(
    "token", [b"", b"\x60\x82garbage", b"\x60" + bytes(200), bytes(range(256)) * 100], ids=range(4)
)
def test_garbage_is_refused_and_others_are_served(node: OperatorNode, kdc: Kdc, token: bytes) -> None:
    with Wire(node.bootstrap_servers, timeout=20) as wire:
        assert wire.call(SaslHandshakeRequest(mechanism="GSSAPI"), 1).error_code == 0
        answer = wire.call(SaslAuthenticateRequest(auth_bytes=token), 2)
        assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert answer.error_message == (
            "Authentication failed during authentication due to invalid credentials with SASL mechanism "
            "GSSAPI"
        )
        assert wire.is_closed_by_peer()
    keytab = kdc.add("carol")
    assert metadata(node, f'useKeyTab=true keyTab="{keytab}" principal="carol@{REALM}"').brokers


@pytest.mark.parametrize(
    ("options", "service", "reason"),
    [
        ("useKeyTab=true", "kafka", "needs keyTab"),
        ('useKeyTab=true keyTab="/nowhere"', "kafka", "does not exist"),
        ("useTicketCache=true", "", "No serviceName"),
        ("serviceName=other", "kafka", "Conflicting serviceName"),
    ],
)
def test_mistakes_are_config_errors(kdc: Kdc, options: str, service: str, reason: str) -> None:
    properties = {"sasl.jaas.config": f"{KRB5} required {options};", "sasl.kerberos.service.name": service}
    with pytest.raises(ConfigError, match=reason):
        sasl_client("GSSAPI", properties.get)
