"""The permissions that the registry needs in Kafka: the table of docs/REGISTRY.md is enough, and needed."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from moldau.security.acl.bindings import AclBinding
from moldau.security.acl.enums import AclOperation, PatternType, PermissionType, ResourceType
from moldau.testing import Cluster
from tests.docs.markdown import section
from tests.harness.nodes.authorized import (
    AuthorizedCluster,
    admin_client,
    authorized_cluster,
    java_login,
)
from tests.harness.registry.instances import Instance, instances, ports
from tests.harness.waiting import eventually

USERS = ("documented", "unfenced", "reader", "nobody")
_ROW = re.compile(r"^\| (\w+) \| `([\w-]+)` \| ([\w, ]+) \|", re.MULTILINE)


def documented() -> list[tuple[ResourceType, str, AclOperation]]:
    """Return the permissions of the page."""
    return [
        (ResourceType[kind.upper()], name, AclOperation[operation.strip().upper()])
        for kind, name, operations in _ROW.findall(section("docs/REGISTRY.md", "Permissions in Kafka"))
        for operation in operations.split(",")
    ]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with AuthorizedCluster(config=authorized_cluster(USERS)) as cluster:
        yield cluster


def allow(cluster: Cluster, user: str, permissions: list[tuple[ResourceType, str, AclOperation]]) -> None:
    with admin_client(cluster.bootstrap_servers) as admin:
        results = admin.create_acls(
            AclBinding(kind, name, PatternType.LITERAL, f"User:{user}", "*", operation, PermissionType.ALLOW)
            for kind, name, operation in permissions
        )
    assert set(results.values()) == {None}


def login(user: str) -> dict[str, str]:
    return {f"kafkastore.{name}": value for name, value in java_login(user).items()}


def test_the_documented_permissions_are_enough(cluster: Cluster) -> None:
    assert len(documented()) > 5
    allow(cluster, "documented", documented())
    with instances(cluster.bootstrap_servers, 1, login("documented")) as [registry]:
        assert registry.register("s", '"string"').json["id"] == 1
        assert registry.ask("DELETE", "/subjects/s").json == [1]
        assert "fenced" not in registry.log
        assert "could not be checked" not in registry.log


def test_without_the_transactional_id_writes_are_not_fenced(cluster: Cluster) -> None:
    least = [each for each in documented() if each[0] != ResourceType.TRANSACTIONAL_ID]
    allow(cluster, "unfenced", least)
    with instances(cluster.bootstrap_servers, 1, login("unfenced")) as [registry]:
        eventually(lambda: registry.register("s", '"int"').status == 200, what="a registration")
        assert "Writes are not fenced by the transactional id schema-registry-schema-registry" in registry.log


@pytest.mark.parametrize("user", ["reader", "nobody"])
def test_missing_permissions_are_named(cluster: Cluster, user: str) -> None:
    if user == "reader":
        allow(cluster, user, [(ResourceType.TOPIC, "_schemas", AclOperation.DESCRIBE)])
    with ports(1) as [port]:
        registry = Instance(cluster.bootstrap_servers, port, login(user))
        try:
            assert registry.exit_code() == 1
            assert "uthoriz" in registry.log
            assert "Traceback" not in registry.log
        finally:
            registry.close()
