"""Several log directories: where replicas lie, what the controller knows about it, and disks without room."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable
from pathlib import Path

from moldau.base.errors import ErrorCode
from moldau.network.client import NodeConnection
from moldau.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from moldau.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from moldau.protocol.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from moldau.protocol.messages.describe_log_dirs import DescribeLogDirsPartition as Described
from moldau.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from moldau.server.node import Node
from moldau.storage.disk.disk import File, PosixDisk
from tests.harness.nodes.node import connected, running_node
from tests.harness.wire.batches import batch
from tests.harness.wire.requests import produce_request

BROKER = 4


def two_folders(tmp_path: Path) -> dict[str, str]:
    return {"log.dirs": f"{tmp_path / 'a'},{tmp_path / 'b'}", "metadata.log.dir": str(tmp_path / "meta")}


async def create(connection: NodeConnection, name: str, partitions: int = 1) -> None:
    topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
    answer = await connection.call(CreateTopicsRequest(topics=[topic]))
    assert answer.topics[0].error_code == 0


async def produce(connection: NodeConnection, topic: str) -> int:
    answer = await connection.call(produce_request(topic, batch()), 12)
    return int(answer.responses[0].partition_responses[0].error_code)


async def described(connection: NodeConnection, topic: str) -> dict[str, list[Described]]:
    """Directory name to what lies there of the first partition."""
    asked = DescribeLogDirsRequest(topics=[DescribableLogDirTopic(topic=topic, partitions=[0])])
    answer = await connection.call(asked)
    return {
        Path(result.log_dir).name: [each for found in result.topics for each in found.partitions]
        for result in answer.results
    }


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.01)


def registered_in(node: Node, topic: str, folder: Path) -> bool:
    directory = node.image.topics.by_name[topic].partitions[0].directory_of(node.id)
    return directory == next(each.id for each in node.broker.logs.directories if each.path == str(folder))


def test_a_future_replica_is_described_and_its_move_reported(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_node(tmp_path, two_folders(tmp_path)) as node, connected(node) as connection:
            await create(connection, "t")
            assert await produce(connection, "t") == 0
            (log,) = node.broker.logs.table.current.values()
            old = Path(log.directory).parent
            new = tmp_path / ("b" if old.name == "a" else "a")
            await until(lambda: registered_in(node, "t", old))
            topics = [AlterReplicaLogDirTopic(name="t", partitions=[0])]
            moved = AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path=str(new), topics=topics)])
            assert (await connection.call(moved)).results[0].partitions[0].error_code == 0
            found = await described(connection, "t")
            assert [each.is_future_key for each in found[old.name]] == [False]
            assert [(each.is_future_key, each.offset_lag) for each in found[new.name]] == [(True, 1)]
            await until(lambda: registered_in(node, "t", new))
            found = await described(connection, "t")
            assert found[old.name] == []
            assert [each.is_future_key for each in found[new.name]] == [False]
            assert await produce(connection, "t") == 0

    asyncio.run(scenario())


def test_a_cordoned_directory_gets_no_new_replicas(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_node(tmp_path, two_folders(tmp_path)) as node, connected(node) as connection:
            cordon = AlterableConfig(name="cordoned.log.dirs", config_operation=0, value=str(tmp_path / "a"))
            resource = AlterConfigsResource(resource_type=BROKER, resource_name="1", configs=[cordon])
            changed = await connection.call(IncrementalAlterConfigsRequest(resources=[resource]))
            assert changed.responses[0].error_code == 0, changed.responses[0].error_message
            await create(connection, "t", 4)
            assert node.broker.logs.table.in_directory(str(tmp_path / "a")) == []
            answer = await connection.call(DescribeLogDirsRequest(topics=None))
            assert {Path(each.log_dir).name: each.is_cordoned for each in answer.results} == {
                "a": True,
                "b": False,
            }
            await node.broker.lifecycle.heartbeat()
            cordoned = node.metadata.image.cluster.brokers[1].cordoned_directories
            assert cordoned == tuple(each.id for each in node.broker.logs.directories if each.cordoned)

    asyncio.run(scenario())


class NoRoom(PosixDisk):
    """While `full`, nothing new can be made below `folder`."""

    def __init__(self, folder: Path) -> None:
        self.full = False
        self._folder = str(folder)

    def open(self, path: str, *, create: bool = False, read_only: bool = False) -> File:
        if self.full and create and path.startswith(self._folder):
            raise OSError(errno.ENOSPC, "No space left on device", path)
        return super().open(path, create=create, read_only=read_only)


def test_a_topic_created_on_a_full_disk_works_once_there_is_space(tmp_path: Path) -> None:
    async def scenario() -> None:
        disk = NoRoom(tmp_path / "logs")
        config = {"metadata.log.dir": str(tmp_path / "meta")}
        async with running_node(tmp_path, config, disk) as node, connected(node) as connection:
            disk.full = True
            await create(connection, "t")
            assert await produce(connection, "t") == ErrorCode.KAFKA_STORAGE_ERROR
            disk.full = False
            await until(
                lambda: (
                    node.broker.logs.table.current.get(next(iter(node.broker.replicas)).topic_partition)
                    is not None
                )
            )
            await until(lambda: next(iter(node.broker.replicas)).log is not None)
            assert await produce(connection, "t") == 0

    asyncio.run(scenario())
