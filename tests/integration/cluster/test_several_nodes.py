"""Nodes of one cluster: discovery of the active controller, registration, forwarding, restarts."""

from __future__ import annotations

import asyncio
import json
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
from moldau.protocol.messages.unregister_broker import UnregisterBrokerRequest
from tests.harness.apache.node import free_port
from tests.harness.nodes.nodes import BOTH, BROKER, CLUSTER_ID, CONTROLLER, Nodes, run, running_nodes, until

ONE_AND_TWO = {1: BOTH, 2: BROKER, 3: BROKER}
ANYWHERE = {"listeners": "PLAINTEXT://127.0.0.1:0"}


async def create(connection: NodeConnection, name: str, partitions: int = 3, factor: int = 3) -> Any:
    topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=factor)
    answer = await connection.call(CreateTopicsRequest(topics=[topic], timeout_ms=10_000))
    return answer.topics[0]


def test_every_broker_forwards_requests_to_the_active_controller(tmp_path: Path) -> None:
    async def main() -> None:
        async with running_nodes(tmp_path, ONE_AND_TWO) as nodes:
            for node_id in nodes.running:
                await until(lambda seen_by=node_id: nodes.unfenced(seen_by) == [1, 2, 3])
            for node_id in nodes.running:
                async with nodes.connected(node_id) as connection:
                    created = await create(connection, f"from-{node_id}")
                    assert created.error_code == ErrorCode.NONE
                    # The topic is usable at once on the broker that received the request.
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


def test_a_stopped_broker_rejoins(tmp_path: Path) -> None:
    async def main() -> None:
        # Waiting for a heartbeat or a session timeout would take minutes.
        slow = {"broker.heartbeat.interval.ms": "300000", "broker.session.timeout.ms": "600000"}
        async with running_nodes(tmp_path, ONE_AND_TWO, slow) as nodes:
            async with nodes.connected(2) as connection:
                await create(connection, "t", 12)
            await until(lambda: len(nodes[1].image.topics.by_name["t"].partitions) == 12)
            async with asyncio.timeout(60):
                await nodes.stop(3)
            partitions = nodes[1].image.topics.by_name["t"].partitions.values()
            assert all(each.leader in (1, 2) for each in partitions)
            assert nodes.unfenced(1) == [1, 2]
            await nodes.start(3)
            await until(lambda: nodes.unfenced(2) == [1, 2, 3])

    run(main)


def test_dedicated_controllers_serve_a_cluster(tmp_path: Path) -> None:
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


def test_all_nodes_stop_without_waiting_for_each_other(tmp_path: Path) -> None:
    async def main() -> None:
        roles = {1: BOTH, 2: BOTH, 3: BOTH}
        async with running_nodes(tmp_path, roles) as nodes:
            async with nodes.connected(1) as connection:
                assert (await create(connection, "t")).error_code == ErrorCode.NONE
            for node_id in (1, 2, 3):
                async with asyncio.timeout(60):
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


def test_a_second_node_with_the_same_id_is_refused(tmp_path: Path) -> None:
    async def main() -> None:
        async with running_nodes(tmp_path, ONE_AND_TWO) as nodes:
            twin = {**ANYWHERE, "log.dirs": str(tmp_path / "twin")}
            error = await refused(nodes, 2, twin)
            assert error.code is ErrorCode.DUPLICATE_BROKER_REGISTRATION
            assert "another process is registered with this node.id" in str(error)
            assert nodes.unfenced(1) == [1, 2, 3]
            async with nodes.connected(2) as connection:
                assert (await create(connection, "t")).error_code == ErrorCode.NONE

    run(main)


def test_a_restarted_node_waits_until_its_previous_incarnation_is_fenced(tmp_path: Path) -> None:
    async def main() -> None:
        async with running_nodes(tmp_path, ONE_AND_TWO) as nodes:
            successor = nodes.make(2, {**ANYWHERE, "log.dirs": str(tmp_path / "new")})
            starting = asyncio.create_task(successor.start())
            await until(lambda: successor.image.offset >= 0)
            assert not starting.done()
            await nodes.stop(2)
            await asyncio.wait_for(starting, 60)
            await until(lambda: nodes.unfenced(1) == [1, 2, 3])
            await successor.stop()

    run(main)


def test_a_node_replaced_by_a_newer_incarnation_stops(tmp_path: Path) -> None:
    async def main() -> None:
        fast = {"broker.session.timeout.ms": "1000", "broker.heartbeat.interval.ms": "200"}
        async with running_nodes(tmp_path, ONE_AND_TWO, fast) as nodes:
            nodes.cut(2)
            twin = nodes.make(3, {**nodes.properties(2), **ANYWHERE, "log.dirs": str(tmp_path / "new")})
            await asyncio.wait_for(twin.start(), 60)
            assert not nodes[2].failed
            nodes.heal(2)
            await until(lambda: nodes[2].failed)
            assert nodes.unfenced(1) == [1, 2, 3]
            await twin.stop()

    run(main)


def test_brokers_wait_for_a_controller(tmp_path: Path) -> None:
    async def main() -> None:
        nodes = Nodes(tmp_path, ONE_AND_TWO, {})
        try:
            brokers = asyncio.create_task(nodes.start(2, 3))
            await until(lambda: len(nodes.running) == 2)
            await nodes.start(1)
            await asyncio.wait_for(brokers, 60)
            await until(lambda: nodes.unfenced(1) == [1, 2, 3])
        finally:
            await nodes.close()

    run(main)


def test_a_node_that_waits_for_a_controller_can_be_stopped(tmp_path: Path) -> None:
    async def main() -> None:
        nodes = Nodes(tmp_path, {1: BOTH, 2: BOTH, 3: BROKER}, {})
        starting = asyncio.create_task(nodes.start(1, 3))
        await until(lambda: len(nodes.running) == 2 and all(n.is_wired for n in nodes.running.values()))
        starting.cancel()
        await asyncio.gather(starting, return_exceptions=True)
        async with asyncio.timeout(60):
            await nodes.close()

    run(main)


def test_a_partitioned_broker_is_fenced_and_unfenced_after_healing(tmp_path: Path) -> None:
    async def main() -> None:
        fast = {"broker.session.timeout.ms": "1000", "broker.heartbeat.interval.ms": "200"}
        async with running_nodes(tmp_path, ONE_AND_TWO, fast) as nodes:
            async with nodes.connected(1) as connection:
                await create(connection, "t", 6)
            nodes.cut(3)
            await until(lambda: nodes.unfenced(1) == [1, 2])
            partitions = nodes[1].image.topics.by_name["t"].partitions.values()
            assert all(each.leader in (1, 2) for each in partitions)
            nodes.heal(3)
            await until(lambda: nodes.unfenced(1) == [1, 2, 3])
            await until(lambda: nodes.unfenced(3) == [1, 2, 3])

    run(main)


def test_an_unregistered_broker_logs_why_it_stops(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        fast = {"broker.heartbeat.interval.ms": "200"}
        async with running_nodes(tmp_path, ONE_AND_TWO, fast) as nodes:
            async with nodes.connected(2) as connection:
                answer = await connection.call(UnregisterBrokerRequest(broker_id=3))
                assert answer.error_code == ErrorCode.NONE
            await until(lambda: "this broker was unregistered" in caplog.text)
            assert nodes.unfenced(1) == [1, 2]

    run(main)


def test_a_node_of_another_cluster_is_refused(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with running_nodes(tmp_path, ONE_AND_TWO) as nodes:
            stranger = {
                "node.id": "9",
                "listeners": "PLAINTEXT://127.0.0.1:0",
                "log.dirs": str(tmp_path / "s"),
            }
            error = await refused(nodes, 2, stranger, "AnotherClusterXXXXXXXX")
            assert "no active controller was found" in str(error)
            assert "does not belong to the cluster of this node" in caplog.text
            assert nodes.unfenced(1) == [1, 2, 3]

    run(main)


def test_a_new_active_controller_contacts_every_broker_before_their_next_heartbeats(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        roles = {1: BOTH, 2: BOTH, 3: BOTH}
        config = {"broker.heartbeat.interval.ms": "30000", "broker.session.timeout.ms": "60000"}
        async with running_nodes(tmp_path, roles, config) as nodes:
            for node_id in roles:
                await until(lambda seen_by=node_id: nodes.unfenced(seen_by) == [1, 2, 3])
            (first,) = (each for each in roles if nodes[each].metadata.is_active)
            await nodes.stop(first)
            left = [nodes[each] for each in roles if each != first]
            await until(lambda: any(each.metadata.is_active for each in left))
            active, other = sorted(left, key=lambda node: not node.metadata.is_active)
            await until(lambda: other.id in active.services.failure_detector._heartbeat_connections.values())

    run(main)


def test_a_broker_unreachable_from_the_controller_is_not_fenced_early(tmp_path: Path) -> None:
    async def main() -> None:
        nodes = Nodes(tmp_path, {1: BOTH, 2: BROKER}, {"broker.heartbeat.interval.ms": "300"})
        nodes.changes[2] = {"advertised.listeners": f"PLAINTEXT://127.0.0.1:{free_port()}"}
        try:
            await nodes.start(1, 2)
            await until(lambda: nodes.unfenced(1) == [1, 2])
            watch, fenced = nodes[1].services.failure_detector, []
            await until(lambda: 2 in watch._heartbeat_connections.values())
            nodes[1].metadata.add_listener(
                lambda delta, image: fenced.append(image.cluster.brokers[2].fenced)
            )
            nodes.cut(2)
            await until(lambda: 2 not in watch._heartbeat_connections.values())
            nodes.heal(2)
            await until(lambda: 2 in watch._heartbeat_connections.values())
            assert not any(fenced)
            assert nodes.unfenced(1) == [1, 2]
        finally:
            await nodes.close()

    run(main)


def test_a_broker_without_a_controller_leaves_its_folder_unchanged(tmp_path: Path) -> None:
    async def main() -> None:
        nodes = Nodes(tmp_path, {1: BOTH, 2: BROKER}, {})
        try:
            await nodes.start(1, 2)
            async with nodes.connected(2) as connection:
                await create(connection, "t", 4, 2)
            epoch = nodes[2].broker.lifecycle.epoch
            await nodes.stop(2)
            await nodes.stop(1)
            mark = tmp_path / "node-2" / ".kafka_cleanshutdown"
            points = tmp_path / "node-2" / "replication-offset-checkpoint"
            before = mark.read_text(), points.read_text()
            assert json.loads(before[0])["brokerEpoch"] == epoch
            lonely = nodes.make(2, {"initial.broker.registration.timeout.ms": "200"})
            with pytest.raises(KafkaError, match="no active controller"):
                await lonely.start()
            await lonely.stop()
            assert (mark.read_text(), points.read_text()) == before
        finally:
            await nodes.close()

    run(main)


def test_unanswered_heartbeats_are_logged_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        config = {"broker.heartbeat.interval.ms": "50"}
        async with running_nodes(tmp_path, {1: BOTH, 2: BROKER}, config) as nodes:
            await nodes.stop(1)
            for _ in range(10):
                await nodes[2].broker.lifecycle.heartbeat()
            assert caplog.text.count("heartbeat failed") == 1

    run(main)
