"""Timeouts and intervals of a node: connections, sessions, checkpoints, metadata snapshots, heartbeats.

The clocks are set as in `test_log_retention.py` and also jump forward and back. The rules are Apache
Kafka's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from moldau.base.errors import ErrorCode
from moldau.base.offsets import LATEST
from moldau.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from moldau.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    RequestPartitionData,
    RequestTopicData,
)
from moldau.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from moldau.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.harness.nodes.node import connected
from tests.harness.nodes.shifted_time import DAY, HOUR, MINUTE, PATIENT, SECOND, TimedNode, run, timed_node
from tests.harness.wire.batches import batch
from tests.harness.wire.requests import fetch_request, produce_request
from tests.harness.wire.wire import request_frame
from tests.integration.durability.test_log_retention import create, offset, write

FETCH = 12


async def until(condition: Callable[[], Any]) -> None:
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.005)


def fetch(*partitions: int, session_id: int = 0, epoch: int = 0) -> FetchRequest:
    asked = [FetchPartition(partition=n, fetch_offset=0, partition_max_bytes=1 << 20) for n in partitions]
    topics = [FetchTopic(topic="t", partitions=asked)] if asked else []
    return FetchRequest(min_bytes=0, session_id=session_id, session_epoch=epoch, topics=topics)


def snapshots(node: TimedNode) -> list[str]:
    return node.files("__cluster_metadata-0", ".checkpoint")


def checkpoint(node: TimedNode, name: str) -> dict[str, int]:
    lines = (node.logs / name).read_text().splitlines()[2:]
    return {line.split()[0]: int(line.split()[2]) for line in lines}


def test_only_idle_connections_are_closed(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with timed_node(tmp_path, {"broker.session.timeout.ms": str(DAY)}) as node:
            await create(node, "t", {})
            async with connected(node.node) as silent, connected(node.node) as busy:
                waiting = asyncio.create_task(
                    busy.call(fetch_request("t", max_wait_ms=2**31 - 1), FETCH, timeout_ms=DAY)
                )
                async with connected(node.node) as talking:
                    for _ in range(4):
                        await node.time.passes(3 * MINUTE)
                        await talking.call(MetadataRequest(topics=[]))
                        assert not talking.closed
                    await until(lambda: silent.closed)
                    assert not busy.closed, "a connection that waits for a response is not idle"
                    assert len(node.node.limits.open) == 2
                await write(node, "t")
                assert (await waiting).responses[0].partitions[0].records
                await node.time.passes(10 * MINUTE + SECOND)
                await until(lambda: busy.closed)
            assert not node.node.limits.open

    run(scenario)


def test_a_connection_that_reads_nothing_counts_as_idle(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with timed_node(tmp_path, {"broker.session.timeout.ms": str(DAY)}) as node:
            await create(node, "t", {"max.message.bytes": "20000000"})
            await node.ask(produce_request("t", batch([(None, bytes(16_000_000))])), 12)
            await until(lambda: not node.node.limits.open)
            _, writer = await asyncio.open_connection("127.0.0.1", node.node.ports["PLAINTEXT"], limit=1024)
            frame = request_frame(fetch_request("t"), FETCH)
            writer.write(len(frame).to_bytes(4, "big") + frame)
            await until(lambda: node.node.limits.stalled)
            await node.time.passes(10 * MINUTE + SECOND)
            await until(lambda: not node.node.limits.open)
            assert not node.node.limits.stalled
            writer.close()

    run(scenario)


def test_connections_max_idle_ms_can_be_disabled(tmp_path: Path) -> None:
    async def scenario() -> None:
        config = {"broker.session.timeout.ms": str(DAY), "connections.max.idle.ms": "-1"}
        async with timed_node(tmp_path, config) as node, connected(node.node) as silent:
            await node.time.passes(12 * HOUR, step=HOUR)
            assert not silent.closed

    run(scenario)


def test_stale_or_smaller_fetch_sessions_are_evicted(tmp_path: Path) -> None:
    async def scenario() -> None:
        config = {**PATIENT, "max.incremental.fetch.session.cache.slots": "1"}
        async with timed_node(tmp_path, config) as node:
            await create(node, "t", {})
            first = (await node.ask(fetch(0), FETCH)).session_id
            assert first
            assert (await node.ask(fetch(0, 1), FETCH)).session_id == 0, (
                "the only session is too new to be evicted"
            )
            await node.time.passes(2 * MINUTE + SECOND)
            second = (await node.ask(fetch(0), FETCH)).session_id
            assert second, "the first session was not used for two minutes"
            gone = await node.ask(fetch(session_id=first, epoch=1), FETCH)
            assert gone.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
            for epoch in (1, 2, 3):
                await node.time.passes(MINUTE)
                answer = await node.ask(fetch(session_id=second, epoch=epoch), FETCH)
                assert answer.error_code == 0
            assert (await node.ask(fetch(0), FETCH)).session_id == 0, (
                "the new session is not larger, and the other one is in use"
            )
            third = (await node.ask(fetch(0, 1), FETCH)).session_id
            assert third, "the new session is larger, and the other one is old"
            gone = await node.ask(fetch(session_id=second, epoch=4), FETCH)
            assert gone.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND

    run(scenario)


def test_checkpoints_are_written_at_their_intervals(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with timed_node(tmp_path, PATIENT) as node:
            await create(node, "t", {"flush.ms": str(10 * SECOND)})
            for _ in range(3):
                await write(node, "t")
            await node.time.passes(6 * SECOND, step=SECOND)
            assert checkpoint(node, "replication-offset-checkpoint") == {"t": 3}
            await node.time.passes(90 * SECOND, step=SECOND)
            assert checkpoint(node, "recovery-point-offset-checkpoint") == {"t": 3}
            await write(node, "t")
            await node.time.passes(30 * SECOND, step=SECOND)
            assert checkpoint(node, "replication-offset-checkpoint") == {"t": 4}
            assert checkpoint(node, "recovery-point-offset-checkpoint") == {"t": 3}, (
                "the default interval is a minute"
            )
            await node.time.passes(31 * SECOND, step=SECOND)
            assert checkpoint(node, "recovery-point-offset-checkpoint") == {"t": 4}

    run(scenario)


def test_metadata_snapshots_are_written_every_hour(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with timed_node(tmp_path, PATIENT) as node:
            first = snapshots(node)
            await create(node, "t", {})
            await node.time.passes(58 * MINUTE, step=MINUTE)
            assert snapshots(node) == first
            await node.time.passes(3 * MINUTE, step=MINUTE)
            hourly = snapshots(node)
            assert len(hourly) == len(first) + 1
            await node.time.passes(3 * HOUR, step=MINUTE)
            assert snapshots(node) == hourly, "nothing was written since"
            await create(node, "u", {})
            await node.time.passes(HOUR, step=MINUTE)
            assert len(snapshots(node)) == len(hourly) + 1
            clock = node.time
        async with timed_node(tmp_path, PATIENT, clock) as node:
            assert [await offset(node, topic, LATEST) for topic in ("t", "u")] == [0, 0]

    run(scenario)


def test_old_metadata_snapshots_and_log_segments_are_deleted(tmp_path: Path) -> None:
    config = {
        **PATIENT, "metadata.max.retention.ms": str(2 * DAY), "metadata.log.segment.ms": str(HOUR),
        "metadata.log.max.snapshot.interval.ms": str(12 * HOUR),
    }  # fmt: skip

    async def scenario() -> None:
        async with timed_node(tmp_path, config) as node:
            for number in range(6):
                await create(node, f"t{number}", {})
                await node.time.passes(12 * HOUR, step=HOUR)
            kept = snapshots(node)
            # Three days of metadata, of which two are retained by the last timestamp of each segment.
            assert len(kept) == 3, kept
            start = min(int(name.split("-")[0]) for name in kept)
            logs = [int(name.split(".")[0]) for name in node.files("__cluster_metadata-0")]
            assert sum(1 for base in logs if base < start) <= 1, (
                "only the segment with the snapshot's offset is left"
            )
            await node.time.passes(10 * DAY, step=DAY)
            assert len(snapshots(node)) == 1, "the last snapshot is retained"
            clock = node.time
        async with timed_node(tmp_path, config, clock) as node:
            topics = (await node.ask(MetadataRequest(topics=None))).topics
            assert sorted(topic.name for topic in topics) == [f"t{number}" for number in range(6)]

    run(scenario)


async def leader_of(node: TimedNode) -> tuple[int, int]:
    answer = await node.ask(MetadataRequest(topics=[MetadataRequestTopic(name="t")]))
    partition = answer.topics[0].partitions[0]
    return partition.leader_id, partition.leader_epoch


def test_a_suspended_node_serves_again(tmp_path: Path) -> None:
    """After a suspension no heartbeat arrived in time: the broker is fenced until the next one."""

    async def scenario() -> None:
        async with timed_node(tmp_path) as node:
            await create(node, "t", {})
            assert await leader_of(node) == (1, 0)
            await node.time.passes(3 * HOUR)
            await node.time.passes(2 * SECOND)
            assert (await leader_of(node))[0] == 1
            assert await write(node, "t") == 0
            broker = node.node.image.cluster.brokers[1]
            assert not broker.fenced

    run(scenario)


def test_steady_heartbeats_keep_the_leader(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with timed_node(tmp_path) as node:
            await create(node, "t", {})
            await node.time.passes(2 * MINUTE, step=SECOND)
            assert await leader_of(node) == (1, 0)

    run(scenario)


@pytest.mark.parametrize("jump", [-DAY, DAY, -1000 * DAY])
def test_wall_clock_jumps_change_neither_leaders_nor_order(tmp_path: Path, jump: int) -> None:
    async def scenario() -> None:
        async with timed_node(tmp_path) as node:
            await create(node, "t", {"message.timestamp.type": "LogAppendTime"})
            assert await write(node, "t") == 0
            node.time.set_wall(jump)
            await node.time.passes(30 * SECOND, step=SECOND)
            assert await leader_of(node) == (1, 0), "sessions do not end by the wall clock"
            assert await write(node, "t") == 1
            await create(node, "u", {})
            await node.ask(DeleteTopicsRequest(topics=[DeleteTopicState(name="u")]))
            quorum = await node.ask(
                DescribeQuorumRequest(
                    topics=[
                        RequestTopicData(topic_name="__cluster_metadata", partitions=[RequestPartitionData()])
                    ]
                )
            )
            assert quorum.topics[0].partitions[0].error_code == 0
            clock = node.time
        async with timed_node(tmp_path, clock=clock) as node:
            assert await offset(node, "t", LATEST) == 2
            assert await write(node, "t") == 2

    run(scenario)


def test_a_deleted_topic_is_removed_from_disk_after_file_delete_delay_ms(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with timed_node(tmp_path, PATIENT) as node:
            await create(node, "t", {})
            await write(node, "t")
            await node.ask(DeleteTopicsRequest(topics=[DeleteTopicState(name="t")]))
            node.time.set_wall(-DAY)
            await node.time.passes(55 * SECOND, step=SECOND)
            assert [each.name for each in node.logs.iterdir() if each.name.endswith("-delete")]
            await node.time.passes(7 * SECOND, step=SECOND)
            assert not [each.name for each in node.logs.iterdir() if each.name.startswith("t")]

    run(scenario)
