"""Creation, deletion, moves and compaction of logs, with power lost at any disk operation."""

from __future__ import annotations

from moldau.base.ids import Uuid
from moldau.storage.log.config import LogConfig
from tests.simulation.crash_points import explore
from tests.simulation.logs import ORDERS, OTHERS, SMALL, Logs


def test_topic_creation_and_deletion_survive_a_power_loss() -> None:
    async def workload(logs: Logs) -> None:
        manager = await logs.start()
        await logs.create(OTHERS)
        for _ in range(2):
            log = await logs.create()
            for _ in range(5):
                logs.append(log)
                logs.append(manager.table.current[OTHERS])
            logs.history[ORDERS].doomed = True
            await manager.delete(ORDERS)
            logs.history[ORDERS].begin_again()
            logs.clock.advance(120_000)
            await manager.upkeep.remove_deleted_files()

    assert explore(workload, LogConfig(**SMALL, flush_messages=1)) > 100


def test_compaction_keeps_the_last_value_of_every_key() -> None:
    async def workload(logs: Logs) -> None:
        manager = await logs.start()
        log = await logs.create()
        for _ in range(3):
            for _ in range(8):
                logs.append(log, keys=5)
            logs.flush(log)
            await manager.checkpoints.write_recovery_points()
            logs.clock.advance(60_000)
            assert await manager.cleaner.clean_due() == 1
            await manager.upkeep.remove_deleted_files()

    config = LogConfig(**SMALL, cleanup_policy=frozenset({"compact"}), min_cleanable_dirty_ratio=0.0)
    assert explore(workload, config) > 200


def test_replica_move_survives_a_power_loss() -> None:
    async def workload(logs: Logs) -> None:
        manager = await logs.start()
        log = await logs.create()
        for _ in range(6):
            logs.append(log)
        target = next(path for path in logs.directories if not log.directory.startswith(path))
        await manager.moves.begin(ORDERS, target)
        logs.append(log)
        await manager.moves.advance()
        moved = manager.table.current[ORDERS]
        assert moved.directory.startswith(target)
        for number in range(4):
            logs.append(moved)
            if number == 2:
                logs.clock.advance(120_000)
                await manager.upkeep.remove_deleted_files()

    for flush_messages in (1, 1000):
        config = LogConfig(**SMALL, flush_messages=flush_messages)
        assert explore(workload, config, directories=2) > 50


def test_a_recreated_topic_does_not_reuse_the_old_log() -> None:
    """A partition deleted and created again under the same name has none of the old records."""

    async def workload(logs: Logs) -> None:
        manager = await logs.start()
        old = await logs.create()
        for _ in range(4):
            logs.append(old)
        logs.history[ORDERS].doomed = True
        await manager.delete(ORDERS)
        logs.history[ORDERS].begin_again()
        log = await manager.creator.get_or_create(ORDERS, Uuid(b"another-topic-id"), logs.config)
        assert log.log_end_offset == 0
        for _ in range(4):
            logs.append(log)

    assert explore(workload, LogConfig(**SMALL, flush_messages=1)) > 20
