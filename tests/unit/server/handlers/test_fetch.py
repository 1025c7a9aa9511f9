"""Fetches that wait for records."""

from __future__ import annotations

import asyncio
import errno
import time
from pathlib import Path
from typing import Any

import pytest

from moldau.base.errors import ErrorCode
from moldau.network.client import NodeConnection
from moldau.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from moldau.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from moldau.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from moldau.server.node import Node
from moldau.storage.disk.disk import LogDirectoryFailed
from moldau.storage.log.reader import LogReader
from tests.harness.nodes.node import connected, running_node
from tests.harness.wire.batches import batch
from tests.harness.wire.requests import produce_request
from tests.unit.storage.disk.flaky_disk import FlakyDisk

LONG_MS = 20_000


async def create(connection: NodeConnection, name: str = "t") -> bytes:
    topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    answer = await connection.call(CreateTopicsRequest(topics=[topic]))
    assert answer.topics[0].error_code == 0
    return bytes(answer.topics[0].topic_id)


def fetch(topic_id: bytes, *, name: str = "t", wait_ms: int = LONG_MS, min_bytes: int = 1) -> FetchRequest:
    asked = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    return FetchRequest(
        max_wait_ms=wait_ms,
        min_bytes=min_bytes,
        topics=[FetchTopic(topic=name, topic_id=topic_id, partitions=[asked])],
    )


def waiters(node: Node) -> int:
    return sum(len(partition.progress.high_watermark) for partition in node.broker.replicas)


async def until(condition: Any) -> None:
    async with asyncio.timeout(5):
        while not condition():
            await asyncio.sleep(0.005)


async def begin_to_wait(node: Node, connection: NodeConnection, request: FetchRequest, version: int) -> Any:
    task = asyncio.create_task(connection.call(request, version))
    await until(lambda: waiters(node) == 1)
    return task


def test_a_disconnected_client_leaves_no_waiter(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_node(tmp_path) as node, connected(node) as other:
            topic_id = await create(other)
            async with connected(node) as connection:
                waiting = await begin_to_wait(node, connection, fetch(topic_id), 13)
            await until(lambda: waiters(node) == 0)
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("version", "code"), [(12, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), (13, ErrorCode.UNKNOWN_TOPIC_ID)]
)
def test_deleting_the_topic_ends_the_wait(tmp_path: Path, version: int, code: ErrorCode) -> None:
    async def scenario() -> None:
        async with running_node(tmp_path) as node, connected(node) as one, connected(node) as other:
            topic_id = await create(one)
            waiting = await begin_to_wait(node, one, fetch(topic_id), version)
            await other.call(DeleteTopicsRequest(topics=[DeleteTopicState(name="t")]))
            answer = await asyncio.wait_for(waiting, 5)
            assert answer.responses[0].partitions[0].error_code == code
            assert waiters(node) == 0

    asyncio.run(scenario())


def test_a_failing_disk_ends_the_wait(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_node(tmp_path) as node, connected(node) as connection:
            topic_id = await create(connection)
            waiting = await begin_to_wait(node, connection, fetch(topic_id), 13)
            folder = next(iter(node.broker.logs.directories)).path
            node.broker.replicas.storage_failed(LogDirectoryFailed(folder, "gone"))
            answer = await asyncio.wait_for(waiting, 5)
            assert answer.responses[0].partitions[0].error_code == ErrorCode.KAFKA_STORAGE_ERROR

    asyncio.run(scenario())


def test_min_bytes_of_records_end_the_wait(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_node(tmp_path) as node, connected(node) as one, connected(node) as other:
            topic_id = await create(one)
            records = batch([(b"k", b"v" * 100)])
            waiting = await begin_to_wait(node, one, fetch(topic_id, min_bytes=len(records) + 1), 13)
            await other.call(produce_request("t", records), 12)
            await asyncio.sleep(0.02)
            assert not waiting.done()
            await other.call(produce_request("t", records), 12)
            answer = await asyncio.wait_for(waiting, 5)
            assert len(answer.responses[0].partitions[0].records) == 2 * len(records)

    asyncio.run(scenario())


def test_records_appended_before_the_wait_are_not_missed(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_node(tmp_path) as node, connected(node) as one, connected(node) as other:
            topic_id = await create(one)
            for offset in range(100):
                request = fetch(topic_id)
                request.topics[0].partitions[0].fetch_offset = offset
                both = asyncio.gather(
                    one.call(request, 13), other.call(produce_request("t", batch([(b"k", b"v")])), 12)
                )
                answer, _ = await asyncio.wait_for(both, 5)
                assert answer.responses[0].partitions[0].records

    asyncio.run(scenario())


def test_reading_from_the_disk_does_not_extend_the_wait(tmp_path: Path) -> None:
    async def scenario() -> None:
        disk = FlakyDisk()
        async with running_node(tmp_path, disk=disk) as node, connected(node) as connection:
            topic_id = await create(connection)
            await connection.call(produce_request("t", batch()), 12)
            disk.cold = True
            began = time.monotonic()
            answer = await connection.call(fetch(topic_id, wait_ms=300, min_bytes=10_000), 13)
            assert 0.25 < time.monotonic() - began < 0.55
            assert answer.responses[0].partitions[0].records

    asyncio.run(scenario())


def test_bytes_of_the_disk_are_counted_when_they_are_sent(tmp_path: Path) -> None:
    async def scenario() -> None:
        disk = FlakyDisk()
        async with running_node(tmp_path, disk=disk) as node, connected(node) as connection:
            topic_id = await create(connection)
            await connection.call(produce_request("t", batch()), 12)
            disk.cold = True
            request = fetch(topic_id, wait_ms=300, min_bytes=10_000)
            waiting = await begin_to_wait(node, connection, request, 13)
            counted = node.broker.replicas.traffic.total()
            assert (counted.bytes_out, counted.disk_bytes) == (0, 0)
            await waiting
            counted = node.broker.replicas.traffic.total()
            assert counted.disk_bytes == counted.bytes_out > 0

    asyncio.run(scenario())


def test_a_disk_that_fails_during_a_read_goes_offline(tmp_path: Path) -> None:
    async def scenario() -> None:
        disk = FlakyDisk()
        async with running_node(tmp_path, disk=disk) as node, connected(node) as connection:
            topic_id = await create(connection)
            await connection.call(produce_request("t", batch()), 12)
            disk.cold, disk.broken_reads = True, errno.EIO
            answer = await connection.call(fetch(topic_id), 13)
            assert answer.responses[0].partitions[0].error_code == ErrorCode.KAFKA_STORAGE_ERROR
            assert next(iter(node.broker.logs.directories)).offline

    asyncio.run(scenario())


def test_idle_partitions_are_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        async with running_node(tmp_path) as node, connected(node) as connection:
            topic_id = await create(connection)
            read, reads = LogReader.read, []

            def counted(reader: LogReader, *arguments: Any, **options: Any) -> Any:
                if reader.topic_partition.topic == "t":
                    reads.append(reader)
                return read(reader, *arguments, **options)

            monkeypatch.setattr(LogReader, "read", counted)
            answer = await connection.call(fetch(topic_id, wait_ms=50))
            assert answer.responses[0].partitions[0].error_code == ErrorCode.NONE
            assert len(reads) == 1
            # Less than was asked for is worth another look when time is up.
            waiting = asyncio.create_task(connection.call(fetch(topic_id, wait_ms=300, min_bytes=100_000)))
            await until(lambda: waiters(node) == 1)
            async with connected(node) as other:
                await other.call(produce_request("t", batch([(b"k", b"v")])), 9)
            assert (await waiting).responses[0].partitions[0].records

    asyncio.run(scenario())
