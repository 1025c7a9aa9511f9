"""Durability of logs when power is lost at any disk operation: appends, rolls, truncation, retention."""

from __future__ import annotations

from moldau.storage.log.config import LogConfig
from tests.simulation.crash_points import explore
from tests.simulation.logs import ORDERS, SMALL, Logs


def test_flush_messages_keeps_every_acknowledged_record() -> None:
    async def workload(logs: Logs) -> None:
        await logs.start()
        log = await logs.create()
        for _ in range(14):
            logs.append(log)
        assert len(log.segments.items) > 2

    assert explore(workload, LogConfig(**SMALL, flush_messages=1)) > 100


def test_flush_ms_and_rolled_segments_are_durable() -> None:
    async def workload(logs: Logs) -> None:
        manager = await logs.start()
        log = await logs.create()
        for number in range(24):
            logs.append(log, 1 + number % 3, size=20 + number * 5)
            if number % 6 == 5:
                logs.clock.advance(1000)
                end = log.log_end_offset
                await manager.upkeep.flush_due()
                logs.history[ORDERS].flushed(end)
                await manager.checkpoints.write_recovery_points()
                await manager.checkpoints.write_high_watermarks()
        assert len(log.segments.items) > 4

    assert explore(workload, LogConfig(**SMALL, flush_ms=1000)) > 100


def test_producer_state_survives_a_power_loss() -> None:
    async def workload(logs: Logs) -> None:
        manager = await logs.start()
        log = await logs.create()
        sequences = {7: 0, 8: 0}
        for number in range(18):
            producer = 7 + number % 2
            options = {"producer_id": producer, "producer_epoch": 0, "base_sequence": sequences[producer]}
            logs.append(log, 2, **options)
            sequences[producer] += 2
            if number % 5 == 4:
                logs.flush(log)
                await manager.checkpoints.write_recovery_points()
        assert len(log.segments.items) > 2

    assert explore(workload, LogConfig(**SMALL)) > 100


def test_retention_deletes_only_expired_segments() -> None:
    async def workload(logs: Logs) -> None:
        manager = await logs.start()
        log = await logs.create()
        for number in range(18):
            logs.append(log)
            if number % 6 == 5:
                # Segments about to be deleted may be missing from here on.
                logs.history[ORDERS].may_start = log.segments.items[-1].base_offset
                await manager.upkeep.retention()
                logs.history[ORDERS].may_start = log.log_start_offset
                await manager.checkpoints.write_log_starts()
                logs.clock.advance(2000)
                await manager.upkeep.remove_deleted_files()
        assert log.log_start_offset > 0

    assert explore(workload, LogConfig(**SMALL, flush_messages=1, retention_bytes=900)) > 100


def test_delete_records_survives_a_power_loss() -> None:
    async def workload(logs: Logs) -> None:
        manager = await logs.start()
        log = await logs.create()
        for number in range(16):
            logs.append(log)
            if number % 4 == 3:
                logs.history[ORDERS].may_start = log.log_end_offset - 3
                log.delete_records_before(log.log_end_offset - 3)
                await manager.upkeep.retention()
                await manager.checkpoints.write_log_starts()
        logs.history[ORDERS].may_start = log.log_end_offset
        log.delete_records_before(-1)
        await manager.checkpoints.write_log_starts()
        await manager.upkeep.retention()

    assert explore(workload, LogConfig(**SMALL, flush_messages=1)) > 100


def test_truncation_survives_a_power_loss() -> None:
    async def workload(logs: Logs) -> None:
        manager = await logs.start()
        log = await logs.create()
        for back in (3, 9, 1, 14):
            for _ in range(7):
                logs.append(log)
            logs.flush(log)
            await manager.checkpoints.write_recovery_points()
            offset = log.log_end_offset - back + back % 2
            logs.history[ORDERS].cut(offset)
            logs.new_epoch()
            await manager.truncate_to(ORDERS, offset)
        logs.append(log)
        logs.flush(log)

    assert explore(workload, LogConfig(**SMALL)) > 100


def test_full_truncation_survives_a_power_loss() -> None:
    async def workload(logs: Logs) -> None:
        manager = await logs.start()
        log = await logs.create()
        for start in (40, 100):
            for _ in range(8):
                logs.append(log)
            logs.flush(log)
            await manager.checkpoints.write_all()
            history = logs.history[ORDERS]
            history.cut(log.log_start_offset)
            history.may_start, history.durable_to = start, 0
            logs.new_epoch()
            await manager.truncate_fully_and_start_at(ORDERS, start)
        logs.append(log)
        logs.flush(log)

    assert explore(workload, LogConfig(**SMALL)) > 80


def test_clean_shutdown_is_durable() -> None:
    async def workload(logs: Logs) -> None:
        for number in range(4):
            manager = await logs.start()
            log = await logs.create()
            for _ in range(3 + number):
                logs.append(log, producer_id=5, producer_epoch=number, base_sequence=0)
                logs.append(log, producer_id=5, producer_epoch=number, base_sequence=2)
                break
            for _ in range(number):
                logs.append(log)
            await manager.checkpoints.write_high_watermarks()
            await logs.stop()

    assert explore(workload, LogConfig(**SMALL)) > 80
