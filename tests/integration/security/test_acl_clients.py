"""ACLs through kafka-python, aiokafka and kafka-acls, the audit log, and an authorizer of one's own."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.errors import GroupAuthorizationFailedError, TopicAuthorizationFailedError
from kafka import KafkaAdminClient, KafkaProducer
from kafka.admin import (
    ACL,
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
)
from kafka.errors import ClusterAuthorizationFailedError, NoError
from kafka.errors import TopicAuthorizationFailedError as KafkaPythonTopicDenied

from moldau.base.errors import ErrorCode, KafkaError
from moldau.client.admin.acls import AclBindingFilter
from moldau.client.admin.client import AdminClient, checked
from moldau.client.admin.topics import NewTopic
from moldau.testing import Cluster
from tests.harness.nodes.authorized import ADMIN, admin_client, authorized_nodes, java_login, password_of
from tests.harness.nodes.properties_file import Operator
from tests.harness.tools import ToolRun, run_tool
from tests.harness.waiting import eventually
from tests.unit.security.acl.acls import acl


@pytest.fixture(scope="module")
def secured() -> Iterator[Cluster]:
    with Cluster(config=authorized_nodes(["alice", "bob"])) as node:
        yield node


@pytest.fixture
def node(secured: Cluster) -> Iterator[Cluster]:
    yield secured
    with admin_client(secured.bootstrap_servers) as admin:
        checked(admin.delete_acls([AclBindingFilter()]))


def allow(node: Cluster, *acls: str) -> None:
    with admin_client(node.bootstrap_servers) as admin:
        checked(admin.create_acls(map(acl, acls)))


def create(node: Cluster, topic: str) -> None:
    with admin_client(node.bootstrap_servers) as admin:
        checked(admin.create_topics([NewTopic(topic, partitions=1, replication_factor=1)]))


def python_login(node: Cluster, user: str) -> dict[str, Any]:
    """The settings of kafka-python and aiokafka."""
    return {
        "bootstrap_servers": node.bootstrap_servers,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "PLAIN",
        "sasl_plain_username": user,
        "sasl_plain_password": password_of(user),
    }


# kafka-python.


def test_kafka_python_creates_describes_and_deletes_acls(node: Cluster) -> None:
    pattern = ResourcePattern(ResourceType.TOPIC, "ord", ACLResourcePatternType.PREFIXED)
    binding = ACL("User:alice", "*", ACLOperation.READ, ACLPermissionType.ALLOW, pattern)
    matching = ResourcePatternFilter(ResourceType.TOPIC, "orders", ACLResourcePatternType.MATCH)
    wanted = ACLFilter(None, None, ACLOperation.ANY, ACLPermissionType.ANY, matching)
    admin = KafkaAdminClient(**python_login(node, ADMIN))
    try:
        created = admin.create_acls([binding])
        assert (created["succeeded"], created["failed"]) == ([binding], [])
        assert admin.describe_acls(wanted) == ([binding], NoError)
        ((_, deleted, error),) = admin.delete_acls([wanted])
        assert deleted == [binding]
        assert error is NoError
        assert admin.describe_acls(wanted) == ([], NoError)
    finally:
        admin.close()


def test_kafka_python_is_refused_what_it_may_not(node: Cluster, topic: str) -> None:
    create(node, topic)
    everything = ResourcePatternFilter(ResourceType.ANY, None, ACLResourcePatternType.ANY)
    admin = KafkaAdminClient(**python_login(node, "bob"))
    try:
        with pytest.raises(ClusterAuthorizationFailedError):
            _, error = admin.describe_acls(
                ACLFilter(None, None, ACLOperation.ANY, ACLPermissionType.ANY, everything)
            )
            raise error
    finally:
        admin.close()
    producer = KafkaProducer(**python_login(node, "bob"), max_block_ms=20_000, enable_idempotence=False)
    try:
        with pytest.raises(KafkaPythonTopicDenied):
            producer.send(topic, b"value").get(20)
        allow(node, f"ALLOW User:bob WRITE TOPIC {topic}")
        assert eventually(lambda: _sent(producer, topic))
    finally:
        producer.close()


def _sent(producer: KafkaProducer, topic: str) -> bool:
    try:
        producer.send(topic, b"value").get(20)
    except KafkaPythonTopicDenied:
        return False
    return True


# aiokafka.


def test_aiokafka_produces_and_consumes_what_it_may(node: Cluster, topic: str) -> None:
    create(node, topic)
    allow(node, f"ALLOW User:alice WRITE TOPIC {topic}")

    async def produce(user: str) -> None:
        async with AIOKafkaProducer(**python_login(node, user), request_timeout_ms=20_000) as producer:
            await producer.send_and_wait(topic, b"value")

    async def consume(user: str) -> bytes:
        consumer = AIOKafkaConsumer(
            topic, **python_login(node, user), group_id=f"{topic}-group", auto_offset_reset="earliest"
        )
        async with consumer:
            async with asyncio.timeout(30):
                return bytes((await consumer.getone()).value)

    asyncio.run(produce("alice"))
    with pytest.raises(TopicAuthorizationFailedError):
        asyncio.run(produce("bob"))
    allow(node, f"ALLOW User:bob READ TOPIC {topic}")
    with pytest.raises(GroupAuthorizationFailedError):
        asyncio.run(consume("bob"))
    allow(node, f"ALLOW User:bob READ GROUP {topic}*")
    assert asyncio.run(consume("bob")) == b"value"


# kafka-acls.


def acls_tool(node: Cluster, folder: Path, user: str, *argv: str) -> ToolRun:
    config = folder / f"{user}.properties"
    config.write_text("".join(f"{name}={value}\n" for name, value in java_login(user).items()))
    address = ("--bootstrap-server", node.bootstrap_servers)
    return run_tool("kafka-acls", *address, "--command-config", str(config), *argv)


def test_kafka_acls_logs_in(node: Cluster, tmp_path: Path) -> None:
    role = ("--topic", "orders", "--producer", "--allow-principal", "User:alice")
    assert acls_tool(node, tmp_path, ADMIN, "--add", *role).code == 0
    listed = acls_tool(node, tmp_path, ADMIN, "--list", "--topic", "orders").lines
    assert len([line for line in listed if "User:alice" in line]) == 3
    denied = acls_tool(node, tmp_path, "alice", "--list")
    assert denied.code == 1
    assert "org.apache.kafka.common.errors.ClusterAuthorizationException" in denied.out
    assert acls_tool(node, tmp_path, ADMIN, "--remove", "--topic", "orders", "--force").code == 0
    assert acls_tool(node, tmp_path, ADMIN, "--list").out == ""


# The audit log.


def test_refusals_are_in_the_log_of_the_node(node: Cluster) -> None:
    with admin_client(node.bootstrap_servers, "bob") as bob, pytest.raises(KafkaError):
        bob.describe_acls(AclBindingFilter())
    line = (
        "INFO Principal = User:bob is Denied operation = DESCRIBE from host = 127.0.0.1 on resource = "
        "Cluster:LITERAL:kafka-cluster for request = DescribeAcls with resourceRefCount = 1 based on rule "
        "DefaultDeny (kafka.authorizer.logger)"
    )
    assert eventually(lambda: line in node.log_file.read_text())
    assert "is Allowed" not in node.log_file.read_text()


# An authorizer of one's own.


ODD_TOPICS = '''
class OddTopics:
    """Everyone may do everything, except to resources whose name ends with one of some letters."""

    def __init__(self, properties):
        self.letters = properties["odd.topics.refused"]

    def authorize(self, principal, host, permission, name, *, log_denied=True, log_allowed=True, api_key=-1):
        return name[-1] not in self.letters

    def authorize_by_resource_type(self, principal, host, operation, resource_type, *, api_key=-1):
        return True

    def apply(self, delta, image):
        pass
'''


def test_a_python_class_decides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "policy").mkdir()
    (tmp_path / "policy" / "odd_topics.py").write_text(ODD_TOPICS)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path / 'policy'}:{os.environ.get('PYTHONPATH', '')}")
    operator = Operator(tmp_path)
    # `kafka-cluster` is refused, too: the right to create topics on the cluster would be sufficient.
    operator.add("authorizer.class.name=odd_topics:OddTopics", "odd.topics.refused=r02468")
    assert operator.format().code == 0
    process = operator.launch()
    try:
        eventually(operator.ready, what="the port is open")
        with AdminClient(f"localhost:{operator.port}") as admin:
            results = admin.create_topics([NewTopic("topic-1"), NewTopic("topic-2")])
        assert results["topic-1"] is None
        refused = results["topic-2"]
        assert isinstance(refused, KafkaError)
        assert refused.code is ErrorCode.TOPIC_AUTHORIZATION_FAILED
    finally:
        process.terminate()
        process.wait(60)
