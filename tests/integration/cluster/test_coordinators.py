"""Coordinators on several brokers: lookup from any broker, listing, availability."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from moldau.base.errors import ErrorCode
from moldau.protocol.messages.describe_groups import DescribeGroupsRequest
from moldau.protocol.messages.find_coordinator import FindCoordinatorRequest
from moldau.protocol.messages.list_transactions import ListTransactionsRequest
from moldau.testing import Cluster
from moldau.testing.cluster import ClusterNode
from tests.harness.clients.feed import QUIET, create
from tests.harness.nodes.leaders import GROUP, SHARE, TRANSACTION, coordinator_of
from tests.harness.nodes.nodes import BOTH, BROKER, Nodes, run
from tests.harness.waiting import eventually
from tests.harness.wire.wire import Wire

NAMES = [f"name-{number}" for number in range(12)]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(brokers=3) as cluster:
        yield cluster


def wire(node: ClusterNode) -> Wire:
    return Wire(f"127.0.0.1:{node.port}", timeout=60)


def find(node: ClusterNode, kind: int, keys: list[str]) -> dict[str, tuple[int, int, int]]:
    """Return error, id and port by name, according to one broker."""
    answer = wire(node).call(FindCoordinatorRequest(key_type=kind, coordinator_keys=keys), 6)
    return {each.key: (each.error_code, each.node_id, each.port) for each in answer.coordinators}


@pytest.mark.parametrize("kind", [GROUP, TRANSACTION, SHARE])
def test_every_broker_names_the_same_coordinators(cluster: Cluster, kind: int) -> None:
    keys = [f"{name}:AAAAAAAAAAAAAAAAAAAAAQ:0" for name in NAMES] if kind == SHARE else NAMES
    for key in keys:
        coordinator_of(cluster, key, kind)
    said = eventually(lambda: same([find(node, kind, keys) for node in cluster.brokers]))
    ports = {node.id: node.port for node in cluster.brokers}
    assert all(code == 0 and port == ports[node_id] for code, node_id, port in said.values())
    assert len({node_id for _, node_id, _ in said.values()}) == 3, "coordinators are spread over the brokers"


def same(answers: list[dict[str, tuple[int, int, int]]]) -> dict[str, tuple[int, int, int]] | None:
    return answers[0] if all(each == answers[0] for each in answers) else None


def test_groups_and_transactions_of_all_coordinators_are_listed(cluster: Cluster, topic: str) -> None:
    create(cluster, topic)
    bootstrap = {"bootstrap.servers": cluster.bootstrap_servers, **QUIET}
    groups = {f"{topic}-{name}" for name in NAMES}
    for group in groups:
        consumer = Consumer({**bootstrap, "group.id": group})
        consumer.commit(offsets=[TopicPartition(topic, 0, 1)], asynchronous=False)
        consumer.close()
    producers = []
    for name in groups:
        producer = Producer({**bootstrap, "transactional.id": name})
        producer.init_transactions(60)
        producers.append(producer)
    admin = AdminClient(bootstrap)
    listed = {each.group_id for each in admin.list_consumer_groups().result(60).valid}
    assert groups <= listed
    by_broker = [
        {each.transactional_id for each in answer.transaction_states}
        for answer in (wire(node).call(ListTransactionsRequest(), 1) for node in cluster.brokers)
    ]
    assert groups <= set().union(*by_broker) and all(by_broker)
    assert sum(map(len, by_broker)) == len(set().union(*by_broker)), "each has one coordinator"


def test_a_broker_that_is_not_the_coordinator_answers_not_coordinator(cluster: Cluster) -> None:
    coordinator = coordinator_of(cluster, "some-group")
    eventually(lambda: same([find(node, GROUP, ["some-group"]) for node in cluster.brokers]))
    for node in cluster.brokers:
        (group,) = wire(node).call(DescribeGroupsRequest(groups=["some-group"]), 6).groups
        expected = ErrorCode.GROUP_ID_NOT_FOUND if node.id == coordinator else ErrorCode.NOT_COORDINATOR
        assert group.error_code == expected


def test_coordinator_not_available_until_enough_brokers_are_registered(tmp_path: Path) -> None:
    """As in Apache Kafka: the coordinators' topics have three replicas, which needs three brokers."""
    request = FindCoordinatorRequest(key_type=GROUP, coordinator_keys=["g"])

    async def main() -> None:
        nodes = Nodes(tmp_path, {1: BOTH, 2: BROKER, 3: BROKER}, {"offsets.topic.replication.factor": "3"})

        async def found_by(node_id: int) -> int:
            async with nodes.connected(node_id) as connection:
                (answer,) = (await connection.call(request)).coordinators
            return int(answer.node_id) if answer.error_code == 0 else -int(answer.error_code)

        try:
            await nodes.start(1, 2)
            assert await found_by(2) == -ErrorCode.COORDINATOR_NOT_AVAILABLE
            await nodes.start(3)
            async with asyncio.timeout(60):
                while (coordinator := await found_by(2)) < 0:
                    await asyncio.sleep(0.05)
            assert coordinator in (1, 2, 3)
        finally:
            await nodes.close()

    run(main)
