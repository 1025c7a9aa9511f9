"""Produce while a disk is full or fails."""

from __future__ import annotations

import asyncio
import errno
from pathlib import Path
from typing import Any

from moldau.base.errors import ErrorCode
from moldau.network.client import NodeConnection
from moldau.protocol.messages.api_versions import ApiVersionsRequest
from moldau.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from moldau.server.node import Node
from tests.harness.nodes.node import connected, running_node
from tests.harness.wire.batches import batch
from tests.harness.wire.requests import produce_request
from tests.unit.storage.disk.flaky_disk import FlakyDisk

RECORDS = batch([(b"k", b"v" * 200)])


class OneBadFolder(FlakyDisk):
    """Only what lies below `folder` fails."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = str(folder)

    def fail_if_broken(self, path: str) -> None:
        if path.startswith(self.folder):
            super().fail_if_broken(path)


def two_folders(tmp_path: Path) -> dict[str, str]:
    return {"log.dirs": f"{tmp_path / 'a'},{tmp_path / 'b'}", "metadata.log.dir": str(tmp_path / "meta")}


async def create(connection: NodeConnection, name: str, partitions: int = 1, **config: str) -> None:
    configs = [CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in config.items()]
    topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1, configs=configs)
    answer = await connection.call(CreateTopicsRequest(topics=[topic]))
    assert answer.topics[0].error_code == 0


async def produce(connection: NodeConnection, topic: str, partition: int = 0) -> Any:
    request = produce_request(topic, RECORDS, partition=partition)
    return (await connection.call(request, 12)).responses[0].partition_responses[0]


def partitions_in(node: Node, folder: Path) -> list[int]:
    return [log.topic_partition.partition for log in node.broker.logs.table.in_directory(str(folder))]


def test_a_disk_that_fails_during_an_append_goes_offline(tmp_path: Path) -> None:
    async def scenario() -> None:
        disk = OneBadFolder(tmp_path / "a")
        async with running_node(tmp_path, two_folders(tmp_path), disk) as node, connected(node) as connection:
            await create(connection, "t", 4)
            lost, kept = partitions_in(node, tmp_path / "a"), partitions_in(node, tmp_path / "b")
            assert lost
            assert kept
            disk.broken = errno.EIO
            answer = await produce(connection, "t", lost[0])
            assert (answer.error_code, answer.base_offset) == (ErrorCode.KAFKA_STORAGE_ERROR, -1)
            offline = [each.path for each in node.broker.logs.directories if each.offline]
            assert offline == [str(tmp_path / "a")]
            for partition in lost:
                assert (await produce(connection, "t", partition)).error_code != 0
            for partition in kept:
                assert (await produce(connection, "t", partition)).error_code == 0
            assert not node.failed

    asyncio.run(scenario())


class NoSync(list[str]):
    """In place of the list of what was synced: nothing of that folder can be."""

    def __init__(self, folder: Path) -> None:
        self._folder = str(folder)

    def append(self, path: str) -> None:
        if path.startswith(self._folder):
            raise OSError(errno.EIO, "Input/output error", path)


def test_a_failed_flush_is_reported_to_the_producer(tmp_path: Path) -> None:
    """The records are written, but with `flush.messages` that is not enough."""

    async def scenario() -> None:
        disk = FlakyDisk()
        async with running_node(tmp_path, two_folders(tmp_path), disk) as node, connected(node) as connection:
            await create(connection, "t", 2, flush_messages="1")
            (partition,) = partitions_in(node, tmp_path / "a")
            assert (await produce(connection, "t", partition)).error_code == 0
            disk.syncs = NoSync(tmp_path / "a")
            answer = await produce(connection, "t", partition)
            assert (answer.error_code, answer.base_offset) == (ErrorCode.KAFKA_STORAGE_ERROR, -1)
            assert [each.path for each in node.broker.logs.directories if each.offline] == [
                str(tmp_path / "a")
            ]
            assert (await produce(connection, "t", 1 - partition)).error_code == 0, "on the same connection"

    asyncio.run(scenario())


def test_a_full_disk_refuses_records_until_there_is_space(tmp_path: Path) -> None:
    async def scenario() -> None:
        disk = FlakyDisk()
        async with running_node(tmp_path, disk=disk) as node, connected(node) as connection:
            await create(connection, "t")
            assert (await produce(connection, "t")).base_offset == 0
            disk.room = 10
            answer = await produce(connection, "t")
            assert (answer.error_code, answer.base_offset) == (ErrorCode.KAFKA_STORAGE_ERROR, -1)
            disk.room = None
            assert (await produce(connection, "t")).base_offset == 1
            assert not any(each.offline for each in node.broker.logs.directories)

    asyncio.run(scenario())


def test_a_client_may_disconnect_while_its_records_are_prepared(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_node(tmp_path) as node, connected(node) as other:
            await create(other, "t", compression_type="zstd")
            large = batch([(b"k", bytes(range(256)) * 2000)])
            for _ in range(5):
                async with connected(node) as connection:
                    sent = asyncio.create_task(connection.call(produce_request("t", large), 12))
                    await asyncio.sleep(0)
                await asyncio.gather(sent, return_exceptions=True)
            assert (await other.call(ApiVersionsRequest(), 0)).error_code == 0
            assert (await produce(other, "t")).error_code == 0

    asyncio.run(scenario())
