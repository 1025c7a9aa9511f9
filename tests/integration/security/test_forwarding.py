"""Brokers forward requests to another node, which authorises the client."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from moldau.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from moldau.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from moldau.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from moldau.protocol.messages.find_coordinator import FindCoordinatorRequest
from moldau.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from moldau.testing import Cluster
from tests.harness.nodes.authorized import AuthorizedCluster, admin_client, authorized_cluster
from tests.harness.security.authorization.prepared import log_in
from tests.harness.waiting import eventually
from tests.harness.wire.batches import batch
from tests.harness.wire.requests import produce_request
from tests.unit.security.acl.acls import acl

DENIED = 29


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """Two brokers and a dedicated controller: every request to the controller is forwarded."""
    config = authorized_cluster(["alice"]) | {
        "offsets.topic.num.partitions": "1",
        "offsets.topic.replication.factor": "2",
    }
    with AuthorizedCluster(brokers=2, controllers=1, config=config) as cluster:
        yield cluster


def call(cluster: Cluster, request: Any, version: int, *, user: str = "alice", broker: int = 0) -> Any:
    with log_in(f"127.0.0.1:{cluster.brokers[broker].port}", user) as wire:
        return wire.call(request, version)


def grant(cluster: Cluster, *bindings: str) -> None:
    with admin_client(cluster.bootstrap_servers) as admin:
        admin.create_acls([acl(each) for each in bindings])


def create(cluster: Cluster, name: str, *, user: str = "alice") -> int:
    topic = CreatableTopic(name=name, num_partitions=1, replication_factor=2)
    request = CreateTopicsRequest(topics=[topic], timeout_ms=30_000)
    code: int = call(cluster, request, 7, user=user).topics[0].error_code
    return code


def test_the_controller_authorises_the_client_of_a_forwarded_request(cluster: Cluster) -> None:
    assert create(cluster, "mine") == DENIED
    grant(cluster, "ALLOW User:alice CREATE TOPIC mine")
    eventually(lambda: create(cluster, "mine") in (0, 36), what="alice creates the topic")
    delete = DeleteTopicsRequest(topics=[DeleteTopicState(name="mine")], timeout_ms=30_000)
    assert call(cluster, delete, 6).responses[0].error_code == DENIED


def test_the_controller_compares_the_host_of_the_client(cluster: Cluster) -> None:
    grant(cluster, "ALLOW User:alice CREATE TOPIC remote @10.1.2.3")
    grant(cluster, "ALLOW User:alice CREATE TOPIC local @127.0.0.1")
    eventually(lambda: create(cluster, "local") in (0, 36), what="alice creates the topic")
    assert create(cluster, "remote") == DENIED


def test_topics_are_created_automatically_with_the_rights_of_the_client(cluster: Cluster) -> None:
    asked = MetadataRequest(topics=[MetadataRequestTopic(name="auto")], allow_auto_topic_creation=True)

    def code() -> int:
        found: int = call(cluster, asked, 12).topics[0].error_code
        return found

    grant(cluster, "ALLOW User:alice DESCRIBE TOPIC auto")
    eventually(lambda: code() == DENIED, what="alice may describe the topic")
    grant(cluster, "ALLOW User:alice CREATE TOPIC auto")
    eventually(lambda: code() == 0, what="the topic is created")


def test_records_are_replicated_by_brokers_for_a_client_that_may_only_write(cluster: Cluster) -> None:
    assert create(cluster, "written", user="admin") == 0
    grant(cluster, "ALLOW User:alice WRITE TOPIC written")

    def produced() -> int:
        codes = []
        for broker in range(2):
            response = call(cluster, produce_request("written", batch()), 12, broker=broker)
            codes.append(response.responses[0].partition_responses[0].error_code)
        return 0 if 0 in codes else max(codes)

    eventually(lambda: produced() == 0, what="alice writes to both replicas")


def test_a_regular_expression_matches_only_topics_that_the_member_may_describe(cluster: Cluster) -> None:
    for name in ("seen-1", "seen-2", "unseen"):
        assert create(cluster, name, user="admin") == 0
    grant(cluster, "ALLOW User:alice READ GROUP regex", "ALLOW User:alice DESCRIBE TOPIC seen-*")
    every = call(cluster, MetadataRequest(topics=None), 12, user="admin").topics
    ids = {topic.topic_id: topic.name for topic in every}
    coordinator = _coordinator(cluster, "regex")

    def assigned() -> set[str]:
        request = ConsumerGroupHeartbeatRequest(
            group_id="regex",
            member_id="AAAAAAAAAAAAAAAAAAAAAw",
            member_epoch=0,
            rebalance_timeout_ms=60_000,
            subscribed_topic_names=[],
            subscribed_topic_regex="(un)?seen.*",
            topic_partitions=[],
        )
        response = call(cluster, request, 1, broker=coordinator)
        if response.error_code != 0 or response.assignment is None:
            return set()
        return {ids[each.topic_id] for each in response.assignment.topic_partitions}

    eventually(lambda: assigned() == {"seen-1", "seen-2"}, what="the visible topics are assigned")


def _coordinator(cluster: Cluster, group_id: str) -> int:
    request = FindCoordinatorRequest(key_type=0, coordinator_keys=[group_id])

    def found() -> int | None:
        (answer,) = call(cluster, request, 4).coordinators
        ports = [node.port for node in cluster.brokers]
        return 1 + ports.index(answer.port) if answer.error_code == 0 else None

    return eventually(found, what="the group has a coordinator") - 1
