"""Three nodes with an authorizer that log in to each other: start, ACLs on every node, failover, restart."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from moldau.base.errors import ErrorCode, KafkaError
from moldau.client.admin.acls import AclBinding, AclBindingFilter
from moldau.client.admin.client import checked
from moldau.client.admin.topics import NewTopic
from moldau.testing import Cluster
from tests.harness.nodes.authorized import ADMIN, AuthorizedCluster, admin_client, authorized_cluster
from tests.harness.waiting import eventually
from tests.unit.security.acl.acls import acl


@pytest.fixture(scope="module", params=["combined", "dedicated controllers"])
def three(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    controllers = 0 if request.param == "combined" else 3
    with AuthorizedCluster(
        brokers=3, controllers=controllers, config=authorized_cluster(["alice", "bob"])
    ) as cluster:
        yield cluster


@pytest.fixture
def cluster(three: Cluster) -> Iterator[Cluster]:
    three.start()
    yield three
    three.start()
    with admin_client(three.bootstrap_servers) as admin:
        admin.delete_acls([AclBindingFilter()])


def described(address: str, user: str = ADMIN, *, controllers: bool = False) -> set[AclBinding]:
    with admin_client(address, user, controllers=controllers) as admin:
        return set(admin.describe_acls(AclBindingFilter()))


def may_describe(address: str, user: str, *, controllers: bool = False) -> bool:
    """Whether a node allows the user to describe ACLs."""
    try:
        described(address, user, controllers=controllers)
    except KafkaError as error:
        assert error.code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        return False
    return True


DESCRIBE = acl("ALLOW User:alice DESCRIBE CLUSTER kafka-cluster")


def test_an_acl_takes_effect_on_every_broker(cluster: Cluster) -> None:
    addresses = [f"127.0.0.1:{node.port}" for node in cluster.brokers]
    assert not any(may_describe(address, "alice") for address in addresses)
    for number, address in enumerate(addresses):
        with admin_client(address) as admin:
            binding = acl(f"ALLOW User:alice READ TOPIC topic-{number}")
            checked(admin.create_acls([binding, DESCRIBE]))
            assert binding in set(admin.describe_acls(AclBindingFilter()))
    for address in addresses:
        eventually(lambda address=address: may_describe(address, "alice"))
        assert not may_describe(address, "bob")
        eventually(lambda address=address: len(described(address)) == 4)


def test_every_controller_knows_the_acls_and_the_active_one_changes_them(cluster: Cluster) -> None:
    with admin_client(cluster.bootstrap_controllers, controllers=True) as admin:
        checked(admin.create_acls([DESCRIBE]))
    for node in cluster.controllers:
        address = f"127.0.0.1:{node.controller_port}"
        # A controller that is not active may lag.
        eventually(lambda address=address: may_describe(address, "alice", controllers=True))
        assert described(address, "alice", controllers=True) == {DESCRIBE}
        assert not may_describe(address, "bob", controllers=True)


def test_acls_survive_the_active_controller_and_a_restart_of_all_nodes(cluster: Cluster) -> None:
    with admin_client(cluster.bootstrap_servers) as admin:
        checked(admin.create_acls([DESCRIBE]))
        checked(admin.create_topics([NewTopic("kept", partitions=3, replication_factor=3)]))
        active = admin.describe_metadata_quorum().leader_id
    cluster.node(active).kill()
    left = ",".join(f"127.0.0.1:{node.port}" for node in cluster.brokers if node.running)
    with admin_client(left) as admin:
        checked(admin.create_acls([acl("ALLOW User:bob DESCRIBE CLUSTER kafka-cluster")]))
    assert may_describe(left, "bob")
    for node in cluster.nodes:
        if node.running:
            node.kill()
    cluster.start()
    for node in cluster.brokers:
        address = f"127.0.0.1:{node.port}"
        eventually(lambda address=address: may_describe(address, "alice"))
        eventually(lambda address=address: may_describe(address, "bob"))
    with admin_client(cluster.bootstrap_servers) as admin:
        assert "kept" in checked(admin.describe_topics(["kept"]))
