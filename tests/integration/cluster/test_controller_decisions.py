"""Decisions of the controller with several real brokers: preferred leaders, reassignments, racks."""

from __future__ import annotations

from pathlib import Path

from moldau.base.errors import ErrorCode
from moldau.metadata.image import PartitionRegistration
from moldau.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from moldau.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
)
from moldau.protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from tests.harness.nodes.nodes import BOTH, BROKER, Nodes, run, running_nodes, until

ROLES = {1: BOTH, 2: BROKER, 3: BROKER}


async def create(nodes: Nodes, *replicas: list[int], asked: int = 2) -> None:
    """Create the topic `t` with one partition for each list of replicas."""
    assignments = [
        CreatableReplicaAssignment(partition_index=index, broker_ids=each)
        for index, each in enumerate(replicas)
    ]
    async with nodes.connected(asked) as connection:
        topic = CreatableTopic(name="t", num_partitions=-1, replication_factor=-1, assignments=assignments)
        answer = await connection.call(CreateTopicsRequest(topics=[topic], timeout_ms=10_000))
        assert answer.topics[0].error_code == ErrorCode.NONE


def partitions(nodes: Nodes, seen_by: int = 1) -> list[PartitionRegistration]:
    topic = nodes[seen_by].image.topics.by_name.get("t")
    return [] if topic is None else list(topic.partitions.values())


def leaders(nodes: Nodes, seen_by: int = 1) -> list[int]:
    return [each.leader for each in partitions(nodes, seen_by)]


def test_preferred_leaders_are_restored_automatically(tmp_path: Path) -> None:
    async def main() -> None:
        often = {"leader.imbalance.check.interval.seconds": "1"}
        async with running_nodes(tmp_path, ROLES, often) as nodes:
            await create(nodes, [3, 1, 2], [2, 3, 1])
            await until(lambda: leaders(nodes, 3) == [3, 2])
            await nodes.stop(3)
            await until(lambda: leaders(nodes) == [1, 2])
            await nodes.start(3)
            await until(lambda: leaders(nodes) == [3, 2] and leaders(nodes, 2) == [3, 2])

    run(main)


def test_preferred_leaders_are_elected_through_any_broker(tmp_path: Path) -> None:
    async def main() -> None:
        async with running_nodes(tmp_path, ROLES, {"auto.leader.rebalance.enable": "false"}) as nodes:
            await create(nodes, [3, 1, 2])
            await until(lambda: leaders(nodes, 3) == [3])
            await nodes.stop(3)
            await nodes.start(3)
            await until(lambda: [sorted(each.isr) for each in partitions(nodes)] == [[1, 2, 3]])
            assert leaders(nodes) == [1]
            async with nodes.connected(2) as connection:
                asked = TopicPartitions(topic="t", partitions=[0])
                answer = await connection.call(ElectLeadersRequest(election_type=0, topic_partitions=[asked]))
                assert answer.replica_election_results[0].partition_result[0].error_code == ErrorCode.NONE
            await until(lambda: leaders(nodes) == [3])

    run(main)


def test_a_reassignment_moves_replicas(tmp_path: Path) -> None:
    async def main() -> None:
        async with running_nodes(tmp_path, ROLES) as nodes:
            await create(nodes, [1, 2])
            async with nodes.connected(3) as connection:
                moved = ReassignablePartition(partition_index=0, replicas=[3, 2])
                topic = ReassignableTopic(name="t", partitions=[moved])
                answer = await connection.call(AlterPartitionReassignmentsRequest(topics=[topic]))
                assert answer.responses[0].partitions[0].error_code == ErrorCode.NONE
            await until(lambda: [each.replicas for each in partitions(nodes)] == [(3, 2)])
            (there,) = partitions(nodes)
            assert (there.replicas, sorted(there.isr)) == ((3, 2), [2, 3])
            assert there.leader in (2, 3)

    run(main)


def test_replicas_are_placed_on_different_racks(tmp_path: Path) -> None:
    async def main() -> None:
        nodes = Nodes(tmp_path, {1: BOTH, 2: BROKER, 3: BROKER, 4: BROKER}, {})
        for node_id, rack in {1: "a", 2: "a", 3: "b", 4: "b"}.items():
            nodes.changes[node_id] = {"broker.rack": rack}
        try:
            await nodes.start(1, 2, 3, 4)
            await until(lambda: nodes.unfenced(1) == [1, 2, 3, 4])
            async with nodes.connected(4) as connection:
                topic = CreatableTopic(name="t", num_partitions=8, replication_factor=2)
                await connection.call(CreateTopicsRequest(topics=[topic], timeout_ms=10_000))
            assert len(partitions(nodes, 4)) == 8
            for each in partitions(nodes, 4):
                assert len({replica < 3 for replica in each.replicas}) == 2
        finally:
            await nodes.close()

    run(main)
