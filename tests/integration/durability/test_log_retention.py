"""Rolling, retention, compaction and producer id expiration of a node over days of virtual time.

The clock is moved by `harness/nodes/shifted_time.py`. The tests check what a client or an operator sees:
offsets, records, files. The rules are Apache Kafka's.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from moldau.base.offsets import EARLIEST, LATEST
from moldau.protocol.messages import incremental_alter_configs as alter
from moldau.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from moldau.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from moldau.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from moldau.protocol.records import iter_batches, iter_records
from tests.harness.nodes.shifted_time import DAY, HOUR, MINUTE, PATIENT, SECOND, TimedNode, run, timed_node
from tests.harness.wire.batches import batch
from tests.harness.wire.requests import FETCH_VERSION, fetch_request, produce_request

TOPIC, BROKER = 2, 4
RETENTION_CHECK = 5 * MINUTE


async def create(node: TimedNode, name: str, config: Mapping[str, str]) -> None:
    configs = [CreatableTopicConfig(name=key, value=value) for key, value in config.items()]
    topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1, configs=configs)
    answer = await node.ask(CreateTopicsRequest(topics=[topic]))
    assert answer.topics[0].error_code == 0, answer.topics[0].error_message


async def configure(node: TimedNode, kind: int, name: str, key: str, value: str) -> None:
    change = alter.AlterableConfig(name=key, config_operation=0, value=value)
    resource = alter.AlterConfigsResource(resource_type=kind, resource_name=name, configs=[change])
    answer = await node.ask(alter.IncrementalAlterConfigsRequest(resources=[resource]))
    assert answer.responses[0].error_code == 0, answer.responses[0].error_message


async def write(
    node: TimedNode,
    topic: str,
    key: str = "k",
    value: str | None = "v",
    *,
    producer_id: int = -1,
    sequence: int = -1,
) -> int:
    """Write a record with the current time; return its offset."""
    data = batch(
        [(key.encode(), None if value is None else value.encode())],
        timestamp=node.time.time_ms(),
        producer_id=producer_id,
        producer_epoch=0 if producer_id >= 0 else -1,
        sequence=sequence,
    )
    answer = (await node.ask(produce_request(topic, data), 12)).responses[0].partition_responses[0]
    assert answer.error_code == 0, answer.error_message
    return int(answer.base_offset)


async def offset(node: TimedNode, topic: str, timestamp: int) -> int:
    asked = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=[asked])])
    return int((await node.ask(request, 6)).topics[0].partitions[0].offset)


async def read(node: TimedNode, topic: str) -> list[tuple[str, str | None]]:
    """Read keys and values from the first offset to the last."""
    found: list[tuple[str, str | None]] = []
    position, end = await offset(node, topic, EARLIEST), await offset(node, topic, LATEST)
    while position < end:
        answer = await node.ask(fetch_request(topic, position), FETCH_VERSION)
        data = bytes(answer.responses[0].partitions[0].records or b"")
        assert data, f"nothing at {position}, the end is {end}"
        for start, header in iter_batches(data):
            for each in iter_records(data[start : start + header.size_in_bytes], header):
                value = None if each.value is None else each.value.decode()
                found.append(((each.key or b"").decode(), value))
            position = header.last_offset + 1
    return found


async def producers(node: TimedNode, topic: str) -> list[int]:
    asked = DescribeProducersRequest(topics=[TopicRequest(name=topic, partition_indexes=[0])])
    answer = (await node.ask(asked, 0)).topics[0].partitions[0]
    return [each.producer_id for each in answer.active_producers]


def log_files(*bases: int) -> list[str]:
    return [f"{base:020d}.log" for base in bases]


def test_records_older_than_retention_ms_are_deleted(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with timed_node(tmp_path, PATIENT) as node:
            await create(node, "short", {"retention.ms": str(3 * HOUR), "segment.ms": str(HOUR)})
            await create(node, "default", {"segment.ms": str(HOUR)})
            for _ in range(4):
                await write(node, "short")
                await write(node, "default")
                await node.time.passes(HOUR - SECOND)
                await write(node, "short")
                await node.time.passes(2 * SECOND)
            assert node.files("short-0") == log_files(2, 4, 6), "each hour has its segment"
            # The first records are four hours old, the next three.
            assert await offset(node, "short", EARLIEST) == 2
            assert await offset(node, "default", EARLIEST) == 0, "the default is a week"
            await node.time.passes(4 * HOUR, step=RETENTION_CHECK)
            assert await offset(node, "short", EARLIEST) == 8, "the active segment is deleted, too"
            assert await offset(node, "short", LATEST) == 8
            assert node.files("short-0") == log_files(8)
            assert await write(node, "short") == 8
            await node.time.passes(7 * DAY, step=HOUR)
            assert await offset(node, "default", EARLIEST) == 4

    run(scenario)


def test_files_of_old_segments_stay_for_file_delete_delay_ms(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with timed_node(tmp_path, PATIENT) as node:
            await create(node, "t", {"retention.ms": str(HOUR), "file.delete.delay.ms": str(10 * MINUTE)})
            await write(node, "t")
            await node.time.passes(HOUR + SECOND)
            assert node.files("t-0") == log_files(1)
            assert node.files("t-0", ".log.deleted") == [f"{0:020d}.log.deleted"]
            await node.time.passes(9 * MINUTE, step=MINUTE)
            assert node.files("t-0", ".deleted")
            await node.time.passes(MINUTE + 2 * SECOND, step=SECOND)
            assert not node.files("t-0", ".deleted")

    run(scenario)


@pytest.mark.parametrize("jump", [-DAY, DAY])
def test_file_deletion_follows_the_monotonic_clock(tmp_path: Path, jump: int) -> None:
    async def scenario() -> None:
        async with timed_node(tmp_path, PATIENT) as node:
            await create(node, "t", {"retention.ms": str(HOUR)})
            await write(node, "t")
            await node.time.passes(HOUR + SECOND)
            node.time.set_wall(jump)
            await node.time.passes(50 * SECOND, step=SECOND)
            assert node.files("t-0", ".deleted"), "the delay is not over"
            await node.time.passes(12 * SECOND, step=SECOND)
            assert not node.files("t-0", ".deleted")

    run(scenario)


def test_the_oldest_segments_beyond_retention_bytes_are_deleted(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with timed_node(tmp_path, PATIENT) as node:
            size = len(batch([(b"k", b"v")]))
            await create(node, "t", {"segment.ms": str(HOUR), "retention.bytes": str(2 * size + 1)})
            for _ in range(5):
                await write(node, "t")
                await node.time.passes(HOUR + SECOND)
            await node.time.passes(RETENTION_CHECK)
            # At least `retention.bytes` are retained, not at most.
            assert await offset(node, "t", EARLIEST) == 2
            await configure(node, TOPIC, "t", "retention.bytes", str(size))
            assert await offset(node, "t", EARLIEST) == 2, "until retention runs"
            await node.time.passes(RETENTION_CHECK)
            assert await offset(node, "t", EARLIEST) == 4

    run(scenario)


def test_changed_retention_applies_to_topics_and_brokers(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with timed_node(tmp_path, PATIENT) as node:
            await create(node, "own", {"retention.ms": "-1"})
            await create(node, "default", {})
            for topic in ("own", "default"):
                await write(node, topic)
            await node.time.passes(30 * DAY, step=DAY)
            assert [await offset(node, topic, EARLIEST) for topic in ("own", "default")] == [0, 1]
            for topic in ("own", "default"):
                await write(node, topic)
            await configure(node, BROKER, "", "log.retention.ms", str(HOUR))
            await node.time.passes(2 * HOUR)
            assert [await offset(node, topic, EARLIEST) for topic in ("own", "default")] == [0, 2]
            await configure(node, TOPIC, "own", "retention.ms", str(HOUR))
            await node.time.passes(RETENTION_CHECK)
            assert await offset(node, "own", EARLIEST) == 2

    run(scenario)


def test_compaction_respects_min_compaction_lag(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with timed_node(tmp_path, PATIENT) as node:
            config = {
                "cleanup.policy": "compact", "segment.ms": str(MINUTE), "min.compaction.lag.ms": str(DAY),
                "min.cleanable.dirty.ratio": "0.01",
            }  # fmt: skip
            await create(node, "t", config)
            for number in range(3):
                await write(node, "t", "k", f"v{number}")
                await node.time.passes(2 * MINUTE)
            everything = [("k", "v0"), ("k", "v1"), ("k", "v2")]
            await node.time.passes(DAY - HOUR, step=HOUR)
            assert await read(node, "t") == everything
            await node.time.passes(2 * HOUR, step=HOUR)
            # v2 is in the active segment and does not supersede earlier values yet.
            assert await read(node, "t") == [("k", "v1"), ("k", "v2")]
            assert await offset(node, "t", LATEST) == 3

    run(scenario)


def test_max_compaction_lag_forces_compaction(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with timed_node(tmp_path, PATIENT) as node:
            config = {
                "cleanup.policy": "compact", "max.compaction.lag.ms": str(HOUR),
                "min.cleanable.dirty.ratio": "1",
            }  # fmt: skip
            await create(node, "t", config)
            for number in range(2):
                await write(node, "t", "k", f"v{number}")
            await node.time.passes(HOUR + SECOND)
            assert len(await read(node, "t")) == 2, "all records are in the active segment"
            # The segment must be rolled in time for that, although `segment.ms` is a week.
            await write(node, "t", "other")
            assert node.files("t-0") == log_files(0, 2)
            await node.time.passes(MINUTE)
            assert await read(node, "t") == [("k", "v1"), ("other", "v")]

    run(scenario)


def test_tombstones_are_removed_after_delete_retention_ms(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with timed_node(tmp_path, PATIENT) as node:
            config = {
                "cleanup.policy": "compact", "segment.ms": str(MINUTE), "delete.retention.ms": str(DAY),
                "min.cleanable.dirty.ratio": "0.01",
            }  # fmt: skip
            await create(node, "t", config)
            await write(node, "t", "gone", "v")
            await write(node, "t", "gone", None)
            await node.time.passes(2 * MINUTE)
            await write(node, "t", "a")
            await node.time.passes(MINUTE)
            assert await read(node, "t") == [("gone", None), ("a", "v")]
            # The day starts with the cleaning that first saw the tombstone; the next cleaning removes it.
            await node.time.passes(DAY - HOUR, step=HOUR)
            await write(node, "t", "b")
            await node.time.passes(MINUTE)
            assert await read(node, "t") == [("gone", None), ("a", "v"), ("b", "v")]
            await node.time.passes(2 * HOUR, step=HOUR)
            await write(node, "t", "c")
            await node.time.passes(MINUTE)
            assert await read(node, "t") == [("a", "v"), ("b", "v"), ("c", "v")]

    run(scenario)


def test_idle_producer_ids_expire(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with timed_node(tmp_path, PATIENT) as node:
            await create(node, "t", {})
            await write(node, "t", producer_id=71, sequence=0)
            await node.time.passes(DAY - HOUR, step=HOUR)
            await write(node, "t", producer_id=72, sequence=0)
            assert await producers(node, "t") == [71, 72]
            await node.time.passes(HOUR + 10 * MINUTE, step=10 * MINUTE)
            assert await producers(node, "t") == [72]
            # An expired producer may continue its sequence; its duplicates are accepted.
            assert await write(node, "t", producer_id=71, sequence=0) == 2
            await configure(node, BROKER, "", "producer.id.expiration.ms", str(HOUR))
            await node.time.passes(HOUR + 10 * MINUTE, step=10 * MINUTE)
            assert await producers(node, "t") == []

    run(scenario)


def test_producer_ids_expire_while_the_node_is_down(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with timed_node(tmp_path, PATIENT) as node:
            await create(node, "t", {})
            await write(node, "t", producer_id=71, sequence=0)
            await configure(node, BROKER, "", "producer.id.expiration.ms", str(HOUR))
            clock = node.time
        async with timed_node(tmp_path, PATIENT, clock) as node:
            assert await producers(node, "t") == [71]
        await clock.passes(HOUR)
        async with timed_node(tmp_path, PATIENT, clock) as node:
            assert await producers(node, "t") == []

    run(scenario)
