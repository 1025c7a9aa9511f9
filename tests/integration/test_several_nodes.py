"""Nodes of one cluster: they find the active controller, register, serve requests for it, and come and go."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from moldau.base.errors import ErrorCode, KafkaError
from moldau.network.client import NodeConnection
from moldau.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from moldau.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from moldau.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from moldau.protocol.messages.describe_cluster import DescribeClusterRequest
from moldau.protocol.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from moldau.protocol.messages.metadata import MetadataRequest
from tests.harness.nodes import BOTH, BROKER, CLUSTER_ID, CONTROLLER, Nodes, run, running_nodes, until

ONE_AND_TWO = {1: BOTH, 2: BROKER, 3: BROKER}


async def create(connection: NodeConnection, name: str, partitions: int = 3, factor: int = 3) -> Any:
    topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=factor)
    answer = await connection.call(CreateTopicsRequest(topics=[topic], timeout_ms=10_000))
    return answer.topics[0]


def test_brokers_join_a_controller_and_every_one_of_them_takes_requests_for_it(tmp_path: Path) -> None:
    async def main() -> None:
        async with running_nodes(tmp_path, ONE_AND_TWO) as nodes:
            for node_id in nodes.running:
                await until(lambda seen_by=node_id: nodes.unfenced(seen_by) == [1, 2, 3])
            for node_id in nodes.running:
                async with nodes.connected(node_id) as connection:
                    created = await create(connection, f"from-{node_id}")
                    assert created.error_code == ErrorCode.NONE
                    # It can be used at once where it was asked for.
                    assert f"from-{node_id}" in nodes[node_id].image.topics.by_name
                    again = await create(connection, f"from-{node_id}")
                    assert again.error_code == ErrorCode.TOPIC_ALREADY_EXISTS
                    more = CreatePartitionsTopic(name=f"from-{node_id}", count=5, assignments=None)
                    answer = await connection.call(CreatePartitionsRequest(topics=[more], timeout_ms=9000))
                    assert answer.results[0].error_code == ErrorCode.NONE
                    assert len(nodes[node_id].image.topics.by_name[f"from-{node_id}"].partitions) == 5
                    moving = await connection.call(ListPartitionReassignmentsRequest(topics=None))
                    assert (moving.error_code, moving.topics) == (ErrorCode.NONE, [])
                    gone = DeleteTopicsRequest(topics=[DeleteTopicState(name=f"from-{node_id}")])
                    assert (await connection.call(gone)).responses[0].error_code == ErrorCode.NONE
                    assert f"from-{node_id}" not in nodes[node_id].image.topics.by_name

    run(main)


def test_every_node_describes_the_cluster(tmp_path: Path) -> None:
    async def main() -> None:
        async with running_nodes(tmp_path, ONE_AND_TWO) as nodes:
            for node_id in nodes.running:
                await until(lambda seen_by=node_id: nodes.unfenced(seen_by) == [1, 2, 3])
                async with nodes.connected(node_id) as connection:
                    metadata = await connection.call(MetadataRequest(topics=[]))
                    assert sorted(each.node_id for each in metadata.brokers) == [1, 2, 3]
                    assert metadata.controller_id in (1, 2, 3)
                    cluster = await connection.call(DescribeClusterRequest(endpoint_type=1))
                    assert cluster.cluster_id == CLUSTER_ID
            async with nodes.connected(1, "CONTROLLER") as connection:
                cluster = await connection.call(DescribeClusterRequest(endpoint_type=2))
                assert (cluster.controller_id, [each.broker_id for each in cluster.brokers]) == (1, [1])

    run(main)


def test_a_broker_stops_and_comes_back(tmp_path: Path) -> None:
    async def main() -> None:
        async with running_nodes(tmp_path, ONE_AND_TWO) as nodes:
            async with nodes.connected(2) as connection:
                await create(connection, "t", 12)
            await until(lambda: len(nodes[1].image.topics.by_name["t"].partitions) == 12)
            began = time.monotonic()
            await nodes.stop(3)
            took = time.monotonic() - began
            partitions = nodes[1].image.topics.by_name["t"].partitions.values()
            assert all(each.leader in (1, 2) for each in partitions)
            assert nodes.unfenced(1) == [1, 2]
            assert took < 1.0
            await nodes.start(3)
            await until(lambda: nodes.unfenced(2) == [1, 2, 3])

    run(main)


def test_separate_controllers(tmp_path: Path) -> None:
    async def main() -> None:
        roles = {1: BROKER, 2: BROKER, 11: CONTROLLER, 12: CONTROLLER, 13: CONTROLLER}
        async with running_nodes(tmp_path, roles) as nodes:
            async with nodes.connected(1) as connection:
                assert (await create(connection, "t", 4, 2)).error_code == ErrorCode.NONE
            await until(lambda: sorted(nodes[1].image.cluster.controllers) == [11, 12, 13])
            active = next(each for each in (11, 12, 13) if nodes[each].metadata.is_active)
            passive = next(each for each in (11, 12, 13) if each != active)
            async with nodes.connected(passive, "CONTROLLER") as connection:
                assert (await create(connection, "u", 1, 1)).error_code == ErrorCode.NOT_CONTROLLER
            await nodes.stop(active)
            async with nodes.connected(2) as connection:
                assert (await create(connection, "v", 4, 2)).error_code == ErrorCode.NONE

    run(main)


def test_all_stop_without_waiting_for_each_other(tmp_path: Path) -> None:
    async def main() -> None:
        roles = {1: BOTH, 2: BOTH, 3: BOTH}
        async with running_nodes(tmp_path, roles) as nodes:
            async with nodes.connected(1) as connection:
                assert (await create(connection, "t")).error_code == ErrorCode.NONE
            for node_id in (1, 2, 3):
                async with asyncio.timeout(6):
                    await nodes.stop(node_id)

    run(main)


async def refused(
    nodes: Nodes, node_id: int, changes: dict[str, str], cluster_id: str = CLUSTER_ID
) -> KafkaError:
    node = nodes.make(node_id, {"initial.broker.registration.timeout.ms": "2000", **changes}, cluster_id)
    try:
        with pytest.raises(KafkaError) as failure:
            await node.start()
    finally:
        await node.stop()
    return failure.value


def test_two_nodes_with_one_id(tmp_path: Path) -> None:
    async def main() -> None:
        async with running_nodes(tmp_path, ONE_AND_TWO) as nodes:
            twin = {"listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": str(tmp_path / "twin")}
            error = await refused(nodes, 2, twin)
            assert error.code is ErrorCode.DUPLICATE_BROKER_REGISTRATION
            assert "another process is registered with this node.id" in str(error)
            assert nodes.unfenced(1) == [1, 2, 3]
            async with nodes.connected(2) as connection:
                assert (await create(connection, "t")).error_code == ErrorCode.NONE

    run(main)


def test_a_node_of_another_cluster(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with running_nodes(tmp_path, ONE_AND_TWO) as nodes:
            stranger = {
                "node.id": "9",
                "listeners": "PLAINTEXT://127.0.0.1:0",
                "log.dirs": str(tmp_path / "s"),
            }
            error = await refused(nodes, 2, stranger, "AnotherClusterXXXXXXXX")
            assert "no active controller was found" in str(error)
            assert "belongs to another cluster than this node" in caplog.text
            assert nodes.unfenced(1) == [1, 2, 3]

    run(main)
