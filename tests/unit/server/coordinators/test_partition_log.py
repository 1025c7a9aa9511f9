"""Coordinator partitions with a failed log directory or with records that cannot be replayed."""

from __future__ import annotations

import asyncio
import errno
from pathlib import Path

import pytest

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import CONSUMER_OFFSETS_TOPIC
from moldau.protocol.records import Record, build_batch
from moldau.server.node import Node
from moldau.storage.log.append import Origin
from tests.harness.nodes.node import running_node
from tests.unit.server.coordinators.test_coordinator import ONE_REPLICA, commit, committed, make_topic, until
from tests.unit.server.handlers.test_produce import OneBadFolder, partitions_in, two_folders


async def refusal(node: Node, group_id: str) -> ErrorCode:
    with pytest.raises(KafkaError) as refused:
        await commit(node, group_id, 2)
    return refused.value.code


def group_in(node: Node, partitions: list[int]) -> str:
    groups = node.broker.coordinators.groups
    return next(name for n in range(100) if groups.partition_of(name := f"g{n}") in partitions)


def test_a_failed_log_directory_affects_only_its_own_groups(tmp_path: Path) -> None:
    async def main() -> None:
        disk = OneBadFolder(tmp_path / "a")
        async with running_node(tmp_path, ONE_REPLICA | two_folders(tmp_path), disk) as node:
            await make_topic(node)
            lost, kept = (group_in(node, partitions_in(node, tmp_path / name)) for name in "ab")
            for group_id in (lost, kept):
                await commit(node, group_id, 1)
            index = node.broker.coordinators.groups.partition_of(lost)
            disk.broken = errno.EIO
            assert await refusal(node, lost) == ErrorCode.NOT_COORDINATOR
            assert [each.path for each in node.broker.logs.directories if each.offline] == [
                str(tmp_path / "a")
            ]
            assert await refusal(node, lost) == ErrorCode.NOT_COORDINATOR
            await until(lambda: not node.broker.coordinators.groups.leads(index))
            assert await refusal(node, lost) == ErrorCode.NOT_COORDINATOR
            await commit(node, kept, 3)
            assert await committed(node, kept) == {("orders", 0): 3}
            assert not node.failed

    asyncio.run(main())


def test_a_partition_that_cannot_be_replayed_answers_not_coordinator(tmp_path: Path) -> None:
    async def main() -> None:
        async with running_node(tmp_path, ONE_REPLICA) as node:
            await make_topic(node)
            lost, kept = (group_in(node, [index]) for index in (1, 2))
            for group_id in (lost, kept):
                await commit(node, group_id, 1)
            nonsense = build_batch([Record(0, 0, b"", b"", [])], producer_id=1, is_control=True)
            partition = node.broker.replicas.by_name(CONSUMER_OFFSETS_TOPIC, 1)
            partition.usable_log().append_as_leader(nonsense, 0, origin=Origin.COORDINATOR)
        async with running_node(tmp_path, ONE_REPLICA) as node:
            await until(lambda: len(list(node.broker.coordinators.groups.active_shards())) == 3)
            await asyncio.wait([node.broker.coordinators.groups._lead_partitions[1].task], timeout=10)
            assert await refusal(node, lost) == ErrorCode.NOT_COORDINATOR
            listed = await node.broker.coordinators.groups.read_all(lambda shard: shard.list_groups([], []))
            assert [group.group_id for groups in listed for group in groups] == [kept]

    asyncio.run(main())
