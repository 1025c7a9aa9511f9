"""ACLs as clients see them: created, described, deleted, and enforced, through confluent-kafka."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from moldau.base.errors import ErrorCode
from moldau.base.errors import KafkaError as MoldauError
from moldau.client.admin.acls import AclBindingFilter as MoldauFilter
from moldau.client.admin.client import AdminClient as MoldauAdmin
from moldau.client.wire.settings import ClientSettings
from tests.harness.nodes.authorized import ADMIN, authorized_nodes, java_login, librdkafka_login
from tests.integration.conftest import Node, new_node

ANY_ACL = AclBindingFilter(
    ResourceType.ANY, None, ResourcePatternType.ANY, None, None, AclOperation.ANY, AclPermissionType.ANY
)


@pytest.fixture(scope="module")
def node() -> Iterator[Node]:
    with new_node(config=authorized_nodes(["alice", "bob"])) as node:
        yield node


@pytest.fixture
def admin(node: Node) -> Iterator[AdminClient]:
    admin = client(node, ADMIN)
    yield admin
    admin.delete_acls([ANY_ACL])[ANY_ACL].result(30)


def client(node: Node, user: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": node.bootstrap_servers, **librdkafka_login(user)})


def acl(name: str, *, prefixed: bool = False, **changes: Any) -> AclBinding:
    fields = {
        "restype": ResourceType.TOPIC,
        "name": name,
        "resource_pattern_type": ResourcePatternType.PREFIXED if prefixed else ResourcePatternType.LITERAL,
        "principal": "User:alice",
        "host": "*",
        "operation": AclOperation.WRITE,
        "permission_type": AclPermissionType.ALLOW,
    }
    return AclBinding(**(fields | changes))


def create_acls(admin: AdminClient, *bindings: AclBinding) -> None:
    for future in admin.create_acls(list(bindings)).values():
        future.result(30)


def described(admin: AdminClient, wanted: AclBindingFilter = ANY_ACL) -> set[AclBinding]:
    return set(admin.describe_acls(wanted).result(30))


def described_by(node: Node, user: str) -> ErrorCode:
    """Describe all ACLs with Moldau's client; return the error."""
    settings = {"bootstrap.servers": node.bootstrap_servers, **java_login(user)}
    with MoldauAdmin(ClientSettings.from_properties(settings)) as admin:
        try:
            admin.describe_acls(MoldauFilter())
        except MoldauError as error:
            return error.code
    return ErrorCode.NONE


def refusal(call: Callable[[], Any]) -> int:
    with pytest.raises(KafkaException) as refused:
        call()
    return int(refused.value.args[0].code())


def produce(node: Node, user: str, topic: str) -> int | None:
    """Produce a record; return the code of the error."""
    results: list[KafkaError | None] = []
    producer = Producer(
        {"bootstrap.servers": node.bootstrap_servers, "message.timeout.ms": 20_000, **librdkafka_login(user)}
    )
    producer.produce(topic, b"value", on_delivery=lambda error, _: results.append(error))
    producer.flush(30)
    return None if results[0] is None else results[0].code()


def test_alice_may_write_and_bob_may_not(node: Node, admin: AdminClient, topic: str) -> None:
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(30)
    assert produce(node, "alice", topic) == KafkaError.TOPIC_AUTHORIZATION_FAILED
    create_acls(admin, acl(topic))
    assert produce(node, "alice", topic) is None
    assert produce(node, "bob", topic) == KafkaError.TOPIC_AUTHORIZATION_FAILED
    create_acls(admin, acl(topic[:10], prefixed=True, permission_type=AclPermissionType.DENY))
    assert produce(node, "alice", topic) == KafkaError.TOPIC_AUTHORIZATION_FAILED


def test_created_acls_are_described_and_deleted_by_filters(admin: AdminClient) -> None:
    orders, order_prefix = acl("orders"), acl("ord", prefixed=True)
    group = acl("orders", restype=ResourceType.GROUP, operation=AclOperation.READ, host="10.0.0.1")
    create_acls(admin, orders, order_prefix, group)
    create_acls(admin, orders)
    assert described(admin) == {orders, order_prefix, group}
    matching = AclBindingFilter(
        ResourceType.TOPIC,
        "orders",
        ResourcePatternType.MATCH,
        None,
        None,
        AclOperation.ANY,
        AclPermissionType.ANY,
    )
    assert described(admin, matching) == {orders, order_prefix}
    assert set(admin.delete_acls([matching])[matching].result(30)) == {orders, order_prefix}
    assert described(admin) == {group}


def test_invalid_acls_are_refused(admin: AdminClient) -> None:
    cluster = acl("not-kafka-cluster", restype=ResourceType.BROKER)
    principal = acl("orders", principal="alice")
    futures = admin.create_acls([cluster, principal, acl("orders")])
    assert refusal(lambda: futures[cluster].result(30)) == KafkaError.INVALID_REQUEST
    assert refusal(lambda: futures[principal].result(30)) == KafkaError.INVALID_REQUEST
    assert described(admin) == {acl("orders")}


def test_acls_need_rights_on_the_cluster(node: Node, admin: AdminClient) -> None:
    alice = client(node, "alice")
    denied = KafkaError.CLUSTER_AUTHORIZATION_FAILED
    cluster = acl("kafka-cluster", restype=ResourceType.BROKER, operation=AclOperation.DESCRIBE)
    # librdkafka does not report an error of DescribeAcls.
    assert described_by(node, "alice") == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    create_acls(admin, cluster)
    assert described_by(node, "alice") == ErrorCode.NONE
    assert described(alice) == {cluster}
    assert refusal(lambda: create_acls(alice, acl("orders"))) == denied
    assert refusal(lambda: alice.delete_acls([ANY_ACL])[ANY_ACL].result(30)) == denied
    assert described(admin) == {cluster}
