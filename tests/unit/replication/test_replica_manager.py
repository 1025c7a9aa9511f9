"""What clients and followers ask of leaders: ends and starts of logs, throttles, disks that fail."""

from __future__ import annotations

import asyncio
import errno
from pathlib import Path
from typing import Any

import pytest

from moldau.base.errors import ErrorCode, KafkaError
from moldau.metadata.delta import MetadataDelta
from moldau.metadata.image import MetadataImage
from moldau.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from moldau.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from moldau.protocol.stored import metadata as stored
from tests.harness.nodes.replicas import TOPIC, ReplicaBroker, Replicas
from tests.unit.replication.test_partition import produce, run, until, values
from tests.unit.storage.disk.flaky_disk import FlakyDisk


async def call(broker: ReplicaBroker, request: Any) -> Any:
    connection = await broker.connect()
    try:
        return (await connection.call(request)).topics[0].partitions[0]
    finally:
        connection.close()


async def latest(broker: ReplicaBroker, replica_id: int = -1) -> tuple[ErrorCode, int]:
    asked = ListOffsetsPartition(partition_index=0, timestamp=-1)
    answer = await call(
        broker,
        ListOffsetsRequest(replica_id=replica_id, topics=[ListOffsetsTopic(name=TOPIC, partitions=[asked])]),
    )
    return ErrorCode(answer.error_code), answer.offset


async def delete_before(broker: ReplicaBroker, offset: int, timeout_ms: int = 5000) -> tuple[ErrorCode, int]:
    asked = DeleteRecordsPartition(partition_index=0, offset=offset)
    topic = DeleteRecordsTopic(name=TOPIC, partitions=[asked])
    answer = await call(broker, DeleteRecordsRequest(topics=[topic], timeout_ms=timeout_ms))
    return ErrorCode(answer.error_code), answer.low_watermark


def test_new_leader_answers_offset_not_available_below_its_epoch_start(tmp_path: Path) -> None:
    async def scene(world: Replicas) -> None:
        await world.create(1, 2, 3)
        await produce(world[1], b"a")
        # Broker 2 has the record, but has not heard that it is committed, and 3 is not there to tell.
        await world.crash(3)
        await produce(world[1], b"b", acks=1)
        await until(lambda: world[2].log.log_end_offset == 2)
        await world.change(leader=2)
        assert await latest(world[2]) == (ErrorCode.OFFSET_NOT_AVAILABLE, -1)
        assert await latest(world[2], replica_id=1) == (ErrorCode.NONE, 2)
        await world.fence(3)
        await world.change(isr=[1, 2])
        await until(lambda: world[2].log.high_watermark == 2)
        assert await latest(world[2]) == (ErrorCode.NONE, 2)

    run(tmp_path, scene, replica_lag_time_max_ms="30000")


def test_delete_records_waits_for_all_replicas(tmp_path: Path) -> None:
    async def scene(world: Replicas) -> None:
        await world.create(1, 2, 3)
        for value in (b"a", b"b", b"c"):
            await produce(world[1], value)
        loop = asyncio.get_running_loop()
        began = loop.time()
        assert await delete_before(world[1], 2) == (ErrorCode.NONE, 2)
        assert loop.time() - began < 10, "nobody waited for a fetch to end by itself"
        assert [world[number].log.log_start_offset for number in (1, 2, 3)] == [2, 2, 2]

    run(tmp_path, scene, replica_fetch_wait_max_ms="20000", replica_lag_time_max_ms="30000")


def test_delete_records_times_out_without_a_follower(tmp_path: Path) -> None:
    async def scene(world: Replicas) -> None:
        await world.create(1, 2)
        await produce(world[1], b"a")
        await world.crash(2)
        assert await delete_before(world[1], 1, timeout_ms=100) == (ErrorCode.REQUEST_TIMED_OUT, 0)
        await world.fence(2)
        assert await delete_before(world[1], 1) == (ErrorCode.NONE, 1), "one that is gone does not count"

    run(tmp_path, scene, 1, 2, replica_lag_time_max_ms="30000")


def setting(kind: int, resource: str, name: str, value: str) -> stored.ConfigRecord:
    return stored.ConfigRecord(resource_type=kind, resource_name=resource, name=name, value=value)


@pytest.mark.parametrize("side", ["leader", "follower"])
def test_throttled_replica_waits_until_the_rate_allows_more(tmp_path: Path, side: str) -> None:
    async def scene(world: Replicas) -> None:
        await world.create(1, 2)
        await produce(world[1], b"a")
        await world.crash(2)
        await world.fence(2)
        await world.change(isr=[1])
        await world.apply(
            setting(4, "", f"{side}.replication.throttled.rate", "1000"),
            setting(2, TOPIC, f"{side}.replication.throttled.replicas", "*"),
        )
        await produce(world[1], b"b")
        await world.start(2)
        leader, follower = world[1].replicas.throttles, world[2].replicas.throttles
        busy = leader.leader if side == "leader" else follower.follower
        busy.record(1_000_000)
        await asyncio.sleep(0.3)
        assert world[2].log.log_end_offset == 1
        await world.apply(setting(4, "", f"{side}.replication.throttled.rate", "1000000000"))
        await until(lambda: world.registration.isr == (1, 2))
        assert values(world[2]) == [b"a", b"b"]

    run(tmp_path, scene, 1, 2)


def test_throttled_replica_with_the_whole_log_joins_the_isr(tmp_path: Path) -> None:
    async def scene(world: Replicas) -> None:
        await world.apply(setting(4, "", "leader.replication.throttled.rate", "1000"))
        world[1].replicas.throttles.leader.record(1_000_000_000)
        await world.create(1, 2, isr=[1], configs={"leader.replication.throttled.replicas": "*"})
        await until(lambda: world.registration.isr == (1, 2))
        assert world[1].replicas.throttles.leader.is_exceeded()

    run(tmp_path, scene, 1, 2)


def test_failed_disk_of_a_follower_takes_only_its_replica_offline(tmp_path: Path) -> None:
    async def scene(world: Replicas) -> None:
        await world.create(1, 2)
        await produce(world[1], b"a")
        broken = world.disks[2]
        assert isinstance(broken, FlakyDisk)
        broken.broken = errno.EIO
        await produce(world[1], b"b", acks=1)
        await until(lambda: world[2].failures)
        assert world[2].partition.log is None
        await world.fence(2)
        await world.change(isr=[1])
        assert (await produce(world[1], b"c"))[0] is ErrorCode.NONE
        assert values(world[1]) == [b"a", b"b", b"c"]

    async def play() -> None:
        world = Replicas(tmp_path)
        world.disks[2] = FlakyDisk()
        try:
            await world.start(1, 2)
            await scene(world)
        finally:
            for broker in world.brokers.values():
                await broker.crash()

    asyncio.run(play())


def test_a_fenced_partition_counts_as_failed_and_a_retried_one_does_not(tmp_path: Path) -> None:
    async def scene(world: Replicas) -> None:
        await world.create(1, 2)
        await produce(world[1], b"a")
        fetchers = world[2].replicas.fetchers
        # The follower is ahead of its leader, which answers UNKNOWN_LEADER_EPOCH: the fetch is repeated.
        await world.change(only=[2], leader=1)
        await until(lambda: any(each.failures for each in fetchers.followed()))
        assert fetchers.failed_count == 0
        # The leader is ahead, and fences the follower until it learns the leader epoch.
        await world.change(only=[1], leader=1)
        await until(lambda: fetchers.failed_count == 1)
        assert list(fetchers.followed()) == []
        await world.change(leader=1)
        assert fetchers.failed_count == 0
        assert (await produce(world[1], b"b"))[0] is ErrorCode.NONE
        assert values(world[2]) == [b"a", b"b"]

    run(tmp_path, scene, 1, 2)


def test_unclean_election_truncates_the_other_replicas(tmp_path: Path) -> None:
    async def scene(world: Replicas) -> None:
        await world.create(1, 2)
        await produce(world[1], b"a")
        await world.crash(2)
        await world.fence(2)
        await world.change(isr=[1])
        assert (await produce(world[1], b"lost"))[0] is ErrorCode.NONE
        await world.crash(1)
        await world.fence(1)
        await world.change(leader=2, isr=[2], leader_recovery_state=1)
        await world.start(2)
        assert await produce(world[2], b"b") == (ErrorCode.NONE, 1)
        await world.start(1)
        await until(lambda: world.registration.isr == (2, 1))
        assert world.registration.leader_recovery_state == 0
        assert values(world[1]) == values(world[2]) == [b"a", b"b"]

    run(tmp_path, scene, 1, 2)


def test_offline_replica_answers_storage_error_while_logs_are_created(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scene(world: Replicas) -> None:
        broker, epoch = world[1], world[1].epoch
        broker.epoch = -1
        await world.create(1)
        broker.epoch = epoch
        for directory in broker.logs.directories:
            directory.online = False
        codes: list[ErrorCode] = []

        async def create_all(wanted: Any) -> dict[Any, Any]:
            with pytest.raises(KafkaError) as refused:
                broker.partition.usable_log()
            codes.append(refused.value.code)
            return {}

        monkeypatch.setattr(broker.logs.creator, "create_all", create_all)
        await broker.replicas.apply(MetadataDelta.between(MetadataImage.empty(), world.image), world.image)
        assert codes == [ErrorCode.KAFKA_STORAGE_ERROR]

    run(tmp_path, scene, 1)
