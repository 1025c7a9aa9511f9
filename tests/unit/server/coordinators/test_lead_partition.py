"""Coordinator partitions that change leader, leader epoch or log directory."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import CONSUMER_OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC
from moldau.metadata.delta import MetadataDelta
from moldau.metadata.image import MetadataImage
from moldau.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from moldau.protocol.stored.metadata import PartitionChangeRecord
from moldau.server.coordinators import coordinator
from moldau.server.node import Node
from tests.harness.nodes.node import connected, running_node
from tests.unit.server.coordinators.test_coordinator import commit, committed, make_topic, until
from tests.unit.server.coordinators.test_txn_markers import committed_transaction, status

OFFSETS = {
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "1",
}
ELSEWHERE = 77


async def change(node: Node, image: MetadataImage, topic: str, **fields: Any) -> MetadataImage:
    """Apply a metadata change of partition 0 of `topic`."""
    delta = MetadataDelta(image)
    record = PartitionChangeRecord(topic_id=image.topics.by_name[topic].id, partition_id=0, **fields)
    delta.replay(record)
    changed = delta.apply(image.offset + 1, 1)
    await node.broker.replicas.apply(delta, changed)
    node.broker.coordinators.apply(delta, changed)
    return changed


def test_offsets_committed_under_a_new_leader_do_not_complete_requests_of_the_old_one(tmp_path: Path) -> None:
    async def main() -> None:
        async with running_node(tmp_path, OFFSETS) as node:
            await make_topic(node)
            await commit(node, "g", 1)
            partition = node.broker.replicas.by_name(CONSUMER_OFFSETS_TOPIC, 0)
            registration = partition.registration
            both = (node.id, ELSEWHERE)
            led = registration._replace(
                replicas=both, isr=both, partition_epoch=registration.partition_epoch + 1
            )
            partition.take_role(led)
            waiting = asyncio.ensure_future(commit(node, "g", 2))
            await asyncio.sleep(0)
            # Another broker leads now; the replica follows it before the coordinator hears of that.
            lost = led._replace(
                leader=ELSEWHERE, leader_epoch=led.leader_epoch + 1, partition_epoch=led.partition_epoch + 1
            )
            partition.take_role(lost)
            log = partition.usable_log()
            log.high_watermark = log.log_end_offset
            node.broker.coordinators.groups._lead_partitions[0].high_watermark_advanced(0)
            await asyncio.sleep(0.01)
            assert not waiting.done()
            node.broker.coordinators.groups._follow(partition, 0)
            with pytest.raises(KafkaError) as refused:
                await waiting
            assert refused.value.code is ErrorCode.NOT_COORDINATOR

    asyncio.run(main())


def test_groups_stay_loaded_in_a_new_leader_epoch_of_the_same_broker(tmp_path: Path) -> None:
    async def main() -> None:
        async with running_node(tmp_path, OFFSETS) as node:
            await make_topic(node)
            await commit(node, "g", 1)
            shard = node.broker.coordinators.groups.active_shard(0)
            await change(node, node.image, CONSUMER_OFFSETS_TOPIC, leader=node.id)
            assert node.broker.coordinators.groups.active_shard(0) is shard
            assert await committed(node, "g") == {("orders", 0): 1}

    asyncio.run(main())


def test_transactions_are_reloaded_in_a_new_leader_epoch(tmp_path: Path) -> None:
    async def main() -> None:
        async with running_node(tmp_path, OFFSETS) as node:
            transactions = node.broker.coordinators.transactions
            await committed_transaction(node)
            await until(lambda: status(node).name == "COMPLETE_COMMIT")
            epoch = transactions.epoch_of("id")
            assert epoch is not None
            image = await change(node, node.image, TRANSACTION_STATE_TOPIC, leader=node.id)
            await until(lambda: transactions.active_shard(0) is not None)
            assert transactions.epoch_of("id") == epoch + 1
            assert status(node).name == "COMPLETE_COMMIT"
            await change(node, image, TRANSACTION_STATE_TOPIC, leader=ELSEWHERE)
            assert transactions.epoch_of("id") is None

    asyncio.run(main())


def test_a_partition_that_moves_to_another_log_directory_while_loading_is_loaded_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = {**OFFSETS, "log.dirs": f"{tmp_path}/logs,{tmp_path}/more"}

    async def move(node: Node) -> None:
        partition = node.broker.replicas.by_name(CONSUMER_OFFSETS_TOPIC, 0)
        before = partition.usable_log()
        there = next(
            each.path
            for each in node.broker.logs.directories
            if each is not node.broker.logs.directories.of(before)
        )
        topics = [AlterReplicaLogDirTopic(name=CONSUMER_OFFSETS_TOPIC, partitions=[0])]
        request = AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path=there, topics=topics)])
        async with connected(node) as connection:
            await connection.call(request)
        await until(lambda: partition.log is not before)

    async def main() -> None:
        async with running_node(tmp_path, config) as node:
            await make_topic(node)
            await commit(node, "g", 5)
            held, tries = asyncio.Event(), []
            replay = coordinator.replay_partition

            async def wait_first(log: Any, *arguments: Any) -> None:
                tries.append(log)
                await held.wait()
                await replay(log, *arguments)

            monkeypatch.setattr(coordinator, "replay_partition", wait_first)
            groups = node.broker.coordinators.groups
            groups._resign(0)
            groups._follow(node.broker.replicas.by_name(CONSUMER_OFFSETS_TOPIC, 0), 0)
            await until(lambda: tries)
            await move(node)
            held.set()
            await until(lambda: groups.active_shard(0) is not None)
            assert await committed(node, "g") == {("orders", 0): 5}

    asyncio.run(main())
