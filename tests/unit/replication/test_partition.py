"""Leaders and followers over real sockets: what is produced reaches every replica, and only then counts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from moldau.base.errors import ErrorCode
from moldau.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from moldau.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from moldau.protocol.records import iter_batches, iter_records
from moldau.replication.fetch_session import FetchSession
from moldau.replication.partition import Partition
from tests.harness.nodes.replicas import TOPIC, TOPIC_ID, ReplicaBroker, Replicas, replicas
from tests.harness.wire.batches import batch

LONG_SECONDS = 10.0


async def until(condition: Callable[[], Any]) -> None:
    async with asyncio.timeout(LONG_SECONDS):
        while not condition():
            await asyncio.sleep(0.005)


async def produce(
    broker: ReplicaBroker, *values: bytes, acks: int = -1, timeout_ms: int = 5000
) -> tuple[ErrorCode, int]:
    """The code and the base offset."""
    connection = await broker.connect()
    try:
        data = PartitionProduceData(index=0, records=batch([(b"k", value) for value in values]))
        response = await connection.call(
            ProduceRequest(
                acks=acks,
                timeout_ms=timeout_ms,
                topic_data=[TopicProduceData(name=TOPIC, topic_id=TOPIC_ID, partition_data=[data])],
            )
        )
        answer = response.responses[0].partition_responses[0]
        return ErrorCode(answer.error_code), answer.base_offset
    finally:
        connection.close()


def values(broker: ReplicaBroker, end: int | None = None) -> list[bytes]:
    """What lies in a log."""
    log, found, offset = broker.log, [], broker.log.log_start_offset
    end = log.log_end_offset if end is None else end
    while offset < end:
        result = log.reader.read(offset, 1 << 20, upper_bound=end, blocking=True)
        data = b"".join(result.parts)
        for position, header in iter_batches(data):
            view = memoryview(data)[position : position + header.size_in_bytes]
            found += [bytes(each.value or b"") for each in iter_records(view, header)]
            offset = header.next_offset
    return found


async def consume(broker: ReplicaBroker, offset: int = 0, **fields: Any) -> Any:
    connection = await broker.connect()
    try:
        asked = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
        response = await connection.call(
            FetchRequest(
                max_wait_ms=fields.pop("wait_ms", 0),
                min_bytes=1,
                topics=[FetchTopic(topic_id=TOPIC_ID, partitions=[asked])],
                **fields,
            )
        )
        return response.responses[0].partitions[0]
    finally:
        connection.close()


def run(folder: Path, scene: Callable[[Replicas], Any], *numbers: int, **config: str) -> None:
    async def play() -> None:
        async with replicas(folder, *numbers, **config) as world:
            await scene(world)

    asyncio.run(play())


def test_acknowledged_records_are_on_all_replicas(tmp_path: Path) -> None:
    async def scene(world: Replicas) -> None:
        await world.create(1, 2, 3)
        assert await produce(world[1], b"a", b"b") == (ErrorCode.NONE, 0)
        for number in (1, 2, 3):
            assert values(world[number]) == [b"a", b"b"]
        await until(lambda: all(world[number].log.high_watermark == 2 for number in (1, 2, 3)))

    run(tmp_path, scene)


def test_partition_added_during_a_delayed_fetch_is_fetched_at_once(tmp_path: Path) -> None:
    async def scene(world: Replicas) -> None:
        await world.create(1, 2)
        await produce(world[1], b"a")
        loop = asyncio.get_running_loop()
        # The fetcher now waits at the leader, which has nothing new, for as long as it may.
        await world.change(leader=1)
        began = loop.time()
        assert await produce(world[1], b"b") == (ErrorCode.NONE, 1)
        assert loop.time() - began < 5

    run(tmp_path, scene, 1, 2, replica_fetch_wait_max_ms="20000", replica_lag_time_max_ms="30000")


def test_consumers_read_only_below_the_high_watermark(tmp_path: Path) -> None:
    async def scene(world: Replicas) -> None:
        await world.create(1, 2)
        await produce(world[1], b"a")
        await world.crash(2)
        assert await produce(world[1], b"b", acks=1) == (ErrorCode.NONE, 1)
        assert world[1].log.log_end_offset == 2
        answer = await consume(world[1])
        assert answer.high_watermark == 1
        assert (await consume(world[1], 1)).records in (b"", None) or not len(
            (await consume(world[1], 1)).records
        )

    run(tmp_path, scene, 1, 2, replica_lag_time_max_ms="30000")


def test_produce_without_follower_times_out(tmp_path: Path) -> None:
    async def scene(world: Replicas) -> None:
        await world.create(1, 2)
        await produce(world[1], b"a")
        await world.crash(2)
        code, offset = await produce(world[1], b"b", timeout_ms=100)
        assert (code, offset) == (ErrorCode.REQUEST_TIMED_OUT, 1)

    run(tmp_path, scene, 1, 2, replica_lag_time_max_ms="30000")


def test_waiting_produce_fails_when_leadership_is_lost(tmp_path: Path) -> None:
    async def scene(world: Replicas) -> None:
        await world.create(1, 2, 3)
        await produce(world[1], b"a")
        await world.crash(3)
        waiting = asyncio.create_task(produce(world[1], b"b"))
        await until(lambda: world[1].log.log_end_offset == 2)
        await world.change(leader=2)
        assert (await waiting)[0] is ErrorCode.NOT_LEADER_OR_FOLLOWER

    run(tmp_path, scene, replica_lag_time_max_ms="30000")


def test_lagging_follower_leaves_the_isr_and_produce_continues(tmp_path: Path) -> None:
    async def scene(world: Replicas) -> None:
        await world.create(1, 2, 3)
        await produce(world[1], b"a")
        await world.crash(3)
        waiting = asyncio.create_task(produce(world[1], b"b"))
        await until(lambda: world[1].log.log_end_offset == 2)
        await asyncio.sleep(0.3)
        await world[1].replicas.shrink_isr()
        assert await waiting == (ErrorCode.NONE, 1)
        assert world.registration.isr == (1, 2)

    run(tmp_path, scene, replica_lag_time_max_ms="200")


def test_restarted_follower_catches_up_and_rejoins_the_isr(tmp_path: Path) -> None:
    async def scene(world: Replicas) -> None:
        await world.create(1, 2)
        await produce(world[1], b"a")
        await world.crash(2)
        await world.fence(2)
        await world.change(isr=[1])
        for number in range(50):
            assert (await produce(world[1], b"%d" % number))[0] is ErrorCode.NONE
        await world.start(2)
        await until(lambda: world.registration.isr == (1, 2))
        assert values(world[2]) == values(world[1])

    run(tmp_path, scene, 1, 2)


def test_ineligible_replica_is_proposed_again(tmp_path: Path) -> None:
    async def scene(world: Replicas) -> None:
        world.refusals.append(ErrorCode.INELIGIBLE_REPLICA)
        await world.create(1, 2, isr=[1])
        await until(lambda: world.registration.isr == (1, 2))
        assert len(world.alterations) == 2

    run(tmp_path, scene, 1, 2)


def test_a_fenced_broker_does_not_join_the_isr(tmp_path: Path) -> None:
    async def scene(world: Replicas) -> None:
        await world.fence(2)
        await world.create(1, 2, isr=[1])
        assert await produce(world[1], b"a") == (ErrorCode.NONE, 0)
        await until(lambda: world[2].log.log_end_offset == 1)
        await asyncio.sleep(0.1)
        assert world.alterations == []

    run(tmp_path, scene, 1, 2)


@pytest.mark.parametrize("isr", [[1], [1, 2]])
def test_not_enough_replicas_is_reported_before_and_after_the_append(tmp_path: Path, isr: list[int]) -> None:
    async def scene(world: Replicas) -> None:
        await world.create(1, 2, 3, isr=isr)
        code, _ = await produce(world[1], b"a")
        assert code is (ErrorCode.NOT_ENOUGH_REPLICAS if len(isr) < 2 else ErrorCode.NONE)

    async def alone() -> None:
        async with replicas(tmp_path, 1, 2, min_insync_replicas="2") as world:
            if len(isr) < 2:
                await world.fence(2)
            await scene(world)

    asyncio.run(alone())


def test_former_leader_truncates_uncommitted_records(tmp_path: Path) -> None:
    async def scene(world: Replicas) -> None:
        await world.create(1, 2, 3)
        await produce(world[1], b"a")
        await world.crash(1)
        await world.change(leader=2, isr=[2, 3])
        assert await produce(world[2], b"b") == (ErrorCode.NONE, 1)
        # The old leader comes back with a record that nobody else has.
        await world.start(1)
        await until(lambda: 1 in world.registration.isr)
        assert values(world[1]) == [b"a", b"b"]

    run(tmp_path, scene)


def test_diverging_log_is_truncated_at_the_diverging_epoch(tmp_path: Path) -> None:
    async def scene(world: Replicas) -> None:
        await world.create(1, 2)
        await produce(world[1], b"a")
        await world.crash(2)
        await produce(world[1], b"only here", acks=1)
        assert values(world[1]) == [b"a", b"only here"]
        await world.crash(1)
        await world.change(leader=2, isr=[2])
        await world.start(2)
        assert await produce(world[2], b"b") == (ErrorCode.NONE, 1)
        await world.start(1)
        await until(lambda: 1 in world.registration.isr)
        assert values(world[1]) == [b"a", b"b"]
        assert [tuple(each) for each in world[1].log.leader_epochs.entries] == [(0, 0), (1, 1)]

    run(tmp_path, scene, 1, 2, replica_lag_time_max_ms="30000")


def test_empty_follower_starts_at_the_log_start_offset_of_its_leader(tmp_path: Path) -> None:
    async def scene(world: Replicas) -> None:
        await world.create(1, 2)
        await produce(world[1], b"a")
        await world.crash(2)
        await world.fence(2)
        await world.change(isr=[1])
        for number in range(5):
            await produce(world[1], b"%d" % number)
        world[1].log.delete_records_before(4)
        await world.start(2)
        await until(lambda: world.registration.isr == (1, 2))
        assert world[2].log.log_start_offset == 4
        assert values(world[2]) == [b"3", b"4"]

    run(tmp_path, scene, 1, 2)


def test_log_of_a_reassigned_replica_is_deleted(tmp_path: Path) -> None:
    async def scene(world: Replicas) -> None:
        await world.create(1, 2)
        await produce(world[1], b"a")
        assert (tmp_path / "2" / "orders-0").exists()
        await world.change(replicas=[1, 3], isr=[1, 3], directories=[bytes([1]) * 16, bytes([3]) * 16])
        assert not (tmp_path / "2" / "orders-0").exists()
        await until(lambda: world[3].log.high_watermark == 1)

    run(tmp_path, scene)


def test_consumer_is_sent_to_the_preferred_replica_in_its_rack(tmp_path: Path) -> None:
    async def scene() -> None:
        world = Replicas(
            tmp_path,
            {"replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector"},
        )
        try:
            await world.start(1, 2, rack={1: "a", 2: "b"})
            await world.create(1, 2)
            await produce(world[1], b"x")
            assert (await consume(world[1], rack_id="b")).preferred_read_replica == 2
            assert (await consume(world[1], rack_id="a")).preferred_read_replica == -1
            answer = await consume(world[2], rack_id="b", wait_ms=5000)
            assert len(answer.records) and answer.high_watermark == 1
        finally:
            for broker in world.brokers.values():
                await broker.crash()

    asyncio.run(scene())


def test_repeated_metadata_does_not_drop_a_proposed_isr(tmp_path: Path) -> None:
    async def scene(world: Replicas) -> None:
        await world.create(1, 2, 3, isr=[1])
        leader = world[1].partition
        await until(lambda: len(world.registration.isr) == 3)
        leadership = leader.leadership
        assert leadership is not None
        await until(lambda: leader.registration.isr == world.registration.isr)
        await world.crash(3)
        await produce(world[1], b"a", acks=1)
        await asyncio.sleep(0.25)
        world.refusals += [ErrorCode.UNKNOWN_SERVER_ERROR] * 1000
        leader.shrink_isr()
        proposal = leadership.pending
        assert proposal is not None
        leader.take_role(world.registration)
        assert leadership.pending is proposal

    run(tmp_path, scene, replica_lag_time_max_ms="200")


def test_replica_with_a_failed_directory_is_not_fetched_until_the_metadata_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scene(world: Replicas) -> None:
        await world.create(1, 2)
        tried: list[int] = []

        def broken(partition: Partition, records: Any, leader_epoch: int) -> int:
            tried.append(leader_epoch)
            raise RuntimeError("unexpected")

        with monkeypatch.context() as patched:
            patched.setattr(Partition, "append_as_follower", broken)
            await produce(world[1], b"a", acks=1)
            await until(lambda: tried)
            await asyncio.sleep(0.1)
            assert tried == [0]
        await world.change(leader=1)
        await until(lambda: world[2].log.high_watermark == 1)

    run(tmp_path, scene, 1, 2)


def test_fetcher_retries_after_an_unexpected_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def scene(world: Replicas) -> None:
        await world.create(1, 2)
        handle_response, failed = FetchSession.handle_response, []

        def broken(session: FetchSession, response: Any) -> Any:
            if len(failed) < 3:
                failed.append(session)
                raise RuntimeError("unexpected")
            return handle_response(session, response)

        monkeypatch.setattr(FetchSession, "handle_response", broken)
        assert await produce(world[1], b"a") == (ErrorCode.NONE, 0)
        assert len(failed) == 3
        assert caplog.text.count("fetching from broker 1 failed") == 1, "a repeated error is logged once"

    run(tmp_path, scene, 1, 2)


def test_isr_change_is_retried_after_an_unexpected_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    decide, failed = Replicas.alter_partition, []

    async def broken(world: Replicas, request: Any) -> Any:
        if len(failed) < 3:
            failed.append(request)
            raise RuntimeError("unexpected")
        return await decide(world, request)

    async def scene(world: Replicas) -> None:
        await world.create(1, 2, isr=[1])
        await until(lambda: world.registration.isr == (1, 2))
        assert caplog.text.count("AlterPartition failed") == 1

    monkeypatch.setattr(Replicas, "alter_partition", broken)
    run(tmp_path, scene, 1, 2)


def test_leader_that_missed_an_epoch_forgets_the_state_of_its_followers(tmp_path: Path) -> None:
    async def scene(world: Replicas) -> None:
        await world.create(1, 2, 3)
        await world.crash(3)
        await produce(world[1], b"a", acks=1)
        await until(lambda: world[1].partition.leadership.remotes[2].log_end_offset == 1)
        # Broker 3 leads for a moment, has 2 cut its log, and goes again; 1 hears of it when all is over.
        await world.change(leader=3, only=[])
        await world.change(leader=1, isr=[1, 2], only=[1])
        assert world[1].log.high_watermark == 0, "whether 2 still has it is not known"
        await world.change(isr=[1, 2])
        await until(lambda: world[1].log.high_watermark == 1)

    run(tmp_path, scene)


def test_follower_answers_not_leader_even_below_min_isr(tmp_path: Path) -> None:
    async def scene(world: Replicas) -> None:
        await world.fence(2)
        await world.create(1, 2, isr=[1])
        assert await produce(world[1], b"a") == (ErrorCode.NOT_ENOUGH_REPLICAS, -1)
        assert await produce(world[2], b"a") == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)

    run(tmp_path, scene, 1, 2, min_insync_replicas="2")
