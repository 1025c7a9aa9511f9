"""Moves of a replica between log directories while it is in use."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import TopicPartition
from moldau.storage.disk.disk import LogDirectoryFailed
from tests.unit.storage.managed_logs import COMPACT, ORDERS, TOPIC_ID, World, append, folders, stored


def test_replica_moves_with_its_records_and_state(tmp_path: Path) -> None:
    async def scenario() -> None:
        world = World(tmp_path, directories=2)
        first, second = world.paths
        manager = await world.start()
        old = await manager.creator.get_or_create(ORDERS, TOPIC_ID, COMPACT)
        for number in range(5):
            append(old, [(b"k%d" % number, b"v")])
            old.roll()
        old.delete_records_before(2)
        manager.directories[first].cleaner_offsets[ORDERS] = 3
        await manager.moves.begin(ORDERS, second)
        append(old, [(b"late", b"v")])
        assert manager.cleaner.is_busy(ORDERS)
        await manager.moves.advance()
        new = manager.table.current[ORDERS]
        assert new is not old
        assert new.directory == f"{second}/orders-0"
        assert (new.log_start_offset, new.high_watermark, new.topic_id) == (2, 6, TOPIC_ID)
        assert stored(new) == stored(old)
        assert world.replaced == [ORDERS]
        assert not manager.cleaner.is_busy(ORDERS)
        assert manager.directories[second].cleaner_offsets == {ORDERS: 3}
        assert (Path(first) / "cleaner-offset-checkpoint").read_text() == "0\n0\n"
        world.clock.advance(60_000)
        await manager.upkeep.remove_deleted_files()
        assert (folders(first), folders(second)) == ([], ["orders-0"])
        await manager.shutdown()
        manager = await world.start(COMPACT)
        assert stored(manager.table.current[ORDERS]) == stored(new)
        await manager.shutdown()

    asyncio.run(scenario())


class Once:
    """A throttle that allows one read."""

    def __init__(self) -> None:
        self.recorded = 0

    def record(self, size: int) -> None:
        self.recorded += size

    def is_exceeded(self) -> bool:
        return self.recorded > 0


def test_throttled_move_continues_with_the_next_call(tmp_path: Path) -> None:
    async def scenario() -> None:
        world = World(tmp_path, directories=2)
        manager = await world.start()
        log = await manager.creator.get_or_create(ORDERS, TOPIC_ID, COMPACT)
        for number in range(3):
            append(log, [(b"k%d" % number, b"v")])
            log.roll()
        await manager.moves.begin(ORDERS, world.paths[1])
        for copied in (1, 2):
            throttle = manager.moves.throttle = Once()
            await manager.moves.advance()
            assert manager.table.future[ORDERS].log_end_offset == copied
            assert throttle.recorded > 0
        manager.moves.throttle = None
        await manager.moves.advance()
        assert manager.table.future == {}
        await manager.shutdown()

    asyncio.run(scenario())


def test_truncation_during_a_move_applies_to_the_future_log(tmp_path: Path) -> None:
    async def scenario() -> None:
        world = World(tmp_path, directories=2)
        manager = await world.start()
        log = await manager.creator.get_or_create(ORDERS, TOPIC_ID, COMPACT)
        append(log, [(b"a", b"1")])
        append(log, [(b"b", b"not for long")])
        log.roll()
        append(log, [(b"c", b"nor this")])
        await manager.moves.begin(ORDERS, world.paths[1])
        manager.moves.throttle = Once()
        await manager.moves.advance()
        assert manager.table.future[ORDERS].log_end_offset == 2
        await manager.truncate_to(ORDERS, 1)
        append(log, [(b"b", b"2")])
        append(log, [(b"c", b"3")])
        manager.moves.throttle = None
        await manager.moves.advance()
        assert manager.table.future == {}
        assert [record.value for record in stored(manager.table.current[ORDERS])] == [b"1", b"2", b"3"]
        await manager.shutdown()

    asyncio.run(scenario())


def test_move_continues_after_a_restart(tmp_path: Path) -> None:
    async def scenario() -> None:
        world = World(tmp_path, directories=2)
        manager = await world.start()
        append(await manager.creator.get_or_create(ORDERS, TOPIC_ID, COMPACT), [(b"a", b"1")])
        await manager.moves.begin(ORDERS, world.paths[1])
        await manager.shutdown()
        manager = await world.start(COMPACT)
        assert set(manager.table.future) == {ORDERS}
        assert manager.cleaner.is_busy(ORDERS)
        await manager.moves.advance()
        assert manager.table.current[ORDERS].directory == f"{world.paths[1]}/orders-0"
        assert len(stored(manager.table.current[ORDERS])) == 1
        await manager.shutdown()

    asyncio.run(scenario())


def test_move_can_be_cancelled(tmp_path: Path) -> None:
    async def scenario() -> None:
        world = World(tmp_path, directories=3)
        first, second, third = world.paths
        manager = await world.start()
        log = await manager.creator.get_or_create(ORDERS, TOPIC_ID, COMPACT)
        await manager.moves.begin(ORDERS, second)
        await manager.moves.begin(ORDERS, second)
        await manager.moves.begin(ORDERS, third)
        assert manager.table.future[ORDERS].directory.startswith(third)
        await manager.moves.begin(ORDERS, first)
        assert manager.table.future == {}
        assert not manager.cleaner.is_busy(ORDERS)
        await manager.moves.advance()
        assert manager.table.current[ORDERS] is log
        await manager.shutdown()

    asyncio.run(scenario())


def test_leader_epochs_follow_truncation(tmp_path: Path) -> None:
    async def scenario() -> None:
        world = World(tmp_path, directories=2)
        manager = await world.start()
        log = await manager.creator.get_or_create(ORDERS, TOPIC_ID, COMPACT)
        append(log, [(b"a", b"1")])
        await manager.moves.begin(ORDERS, world.paths[1])
        manager.table.future[ORDERS].append_as_follower(
            b"".join(log.reader.read(0, 1000, upper_bound=1, blocking=True).parts)
        )
        log.truncate_fully_and_start_at(50)
        append(log, [(b"b", b"2")])
        await manager.moves.advance()
        assert [record.offset for record in stored(manager.table.current[ORDERS])] == [50]
        await manager.shutdown()

    asyncio.run(scenario())


def test_invalid_moves_are_refused(tmp_path: Path) -> None:
    async def scenario() -> None:
        world = World(tmp_path, directories=3)
        manager = await world.start()
        await manager.creator.get_or_create(ORDERS, TOPIC_ID, COMPACT)
        for partition, path, code in (
            (ORDERS, "/elsewhere", ErrorCode.LOG_DIR_NOT_FOUND),
            (TopicPartition("unknown", 0), world.paths[1], ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ):
            with pytest.raises(KafkaError) as raised:
                await manager.moves.begin(partition, path)
            assert raised.value.code is code
        await manager.moves.begin(ORDERS, world.paths[1])
        manager.failures.report(LogDirectoryFailed(world.paths[1], "gone"))
        assert manager.table.future == {}
        assert not manager.cleaner.is_busy(ORDERS)
        assert world.failures[0].partitions == ()
        with pytest.raises(KafkaError) as raised:
            await manager.moves.begin(ORDERS, world.paths[1])
        assert raised.value.code is ErrorCode.KAFKA_STORAGE_ERROR
        await manager.shutdown()

    asyncio.run(scenario())


def test_deleting_a_partition_cancels_its_move(tmp_path: Path) -> None:
    async def scenario() -> None:
        world = World(tmp_path, directories=2)
        manager = await world.start()
        await manager.creator.get_or_create(ORDERS, TOPIC_ID, COMPACT)
        await manager.moves.begin(ORDERS, world.paths[1])
        await manager.delete(ORDERS)
        assert (manager.table.current, manager.table.future) == ({}, {})
        assert not manager.cleaner.is_busy(ORDERS)
        world.clock.advance(60_000)
        await manager.upkeep.remove_deleted_files()
        assert [folders(path) for path in world.paths] == [[], []]
        await manager.shutdown()

    asyncio.run(scenario())
