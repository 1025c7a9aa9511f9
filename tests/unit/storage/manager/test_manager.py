"""The log manager: loading, creation, deletion, maintenance and disk failures in several directories."""

from __future__ import annotations

import asyncio
import errno
import json
import os
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import TopicPartition, Uuid
from moldau.storage.directories.partition_metadata import write_topic_id
from moldau.storage.disk.disk import File, LogDirectoryFailed, PosixDisk
from moldau.storage.log.config import LogConfig
from moldau.storage.manager.creation import NewLog
from moldau.storage.manager.manager import LogManager, LogManagerSettings
from tests.unit.storage.managed_logs import ORDERS, TOPIC_ID, World, append, folders, names, stored

CONFIG = LogConfig()


def partitions(count: int, topic: str = "t") -> list[TopicPartition]:
    return [TopicPartition(topic, number) for number in range(count)]


def test_records_survive_a_restart_without_recovery(tmp_path: Path) -> None:
    async def scenario() -> None:
        world = World(tmp_path)
        manager = await world.start()
        log = await manager.creator.get_or_create(ORDERS, TOPIC_ID, CONFIG)
        append(log, [(b"a", b"1"), (b"b", b"2")])
        await manager.shutdown(broker_epoch=7)
        data = Path(world.paths[0])
        assert json.loads((data / ".kafka_cleanshutdown").read_text()) == {"version": 0, "brokerEpoch": 7}
        assert (data / "recovery-point-offset-checkpoint").read_text() == "0\n1\norders 0 2\n"
        assert (data / "replication-offset-checkpoint").read_text() == "0\n1\norders 0 2\n"
        assert (data / "log-start-offset-checkpoint").read_text() == "0\n0\n"

        manager = await world.start()
        assert manager.previous_broker_epoch == 7
        assert not (data / ".kafka_cleanshutdown").exists()
        log = manager.table.current[ORDERS]
        assert (log.topic_id, log.high_watermark, log.flusher.recovery_point) == (TOPIC_ID, 2, 2)
        assert [record.value for record in stored(log)] == [b"1", b"2"]
        await manager.shutdown()

    asyncio.run(scenario())


def test_unclean_shutdown_recovers_the_log_tail(tmp_path: Path) -> None:
    async def scenario() -> None:
        world = World(tmp_path)
        manager = await world.start()
        log = await manager.creator.get_or_create(ORDERS, TOPIC_ID, CONFIG)
        append(log, [(b"a", b"1")])
        append(log, [(b"b", b"2")])
        await manager.shutdown()
        data = Path(world.paths[0])
        (data / ".kafka_cleanshutdown").unlink()
        (data / "recovery-point-offset-checkpoint").unlink()
        segment = data / "orders-0" / "00000000000000000000.log"
        with segment.open("r+b") as file:
            file.truncate(segment.stat().st_size - 3)
        manager = await world.start()
        assert manager.previous_broker_epoch is None
        assert [record.value for record in stored(manager.table.current[ORDERS])] == [b"1"]
        await manager.shutdown()

    asyncio.run(scenario())


def test_damaged_checkpoints_are_ignored(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        world = World(tmp_path)
        manager = await world.start()
        append(await manager.creator.get_or_create(ORDERS, TOPIC_ID, CONFIG), [(b"a", b"1")])
        await manager.shutdown()
        for name in ("recovery-point", "log-start", "replication", "cleaner"):
            (Path(world.paths[0]) / f"{name}-offset-checkpoint").write_text("0\n5\nnonsense\n")
        manager = await world.start()
        assert len(stored(manager.table.current[ORDERS])) == 1
        await manager.shutdown()

    asyncio.run(scenario())
    assert "recovering everything" in caplog.text


def test_new_logs_are_created_in_the_directory_with_the_fewest(tmp_path: Path) -> None:
    async def scenario() -> None:
        world = World(tmp_path, directories=3)
        manager = await world.start()
        for partition in partitions(7):
            await manager.creator.get_or_create(partition, TOPIC_ID, CONFIG)
        assert [len(manager.table.in_directory(path)) for path in world.paths] == [3, 2, 2]
        wanted = [NewLog(partition, TOPIC_ID, CONFIG) for partition in partitions(20, "u")]
        created = await manager.creator.create_all(wanted)
        assert set(created) == {new.topic_partition for new in wanted}
        assert [len(manager.table.in_directory(path)) for path in world.paths] == [9, 9, 9]
        await manager.shutdown()

    asyncio.run(scenario())


def test_log_is_created_in_the_requested_directory(tmp_path: Path) -> None:
    async def scenario() -> None:
        world = World(tmp_path, directories=2)
        manager = await world.start()
        second = world.paths[1]
        for partition in partitions(3):
            await manager.creator.get_or_create(
                partition, TOPIC_ID, CONFIG, directory_id=manager.directories[second].id
            )
        assert len(manager.table.in_directory(second)) == 3
        await manager.shutdown()

    asyncio.run(scenario())


def test_cordoned_directory_gets_no_new_logs(tmp_path: Path) -> None:
    async def scenario() -> None:
        world = World(tmp_path, directories=2)
        manager = await world.start()
        manager.directories.cordon([world.paths[0]])
        for partition in partitions(3):
            await manager.creator.get_or_create(partition, TOPIC_ID, CONFIG)
        assert len(manager.table.in_directory(world.paths[1])) == 3
        manager.directories.cordon([])
        await manager.creator.get_or_create(ORDERS, TOPIC_ID, CONFIG)
        assert len(manager.table.in_directory(world.paths[0])) == 1
        await manager.shutdown()

    asyncio.run(scenario())


def test_existing_log_is_not_created_again(tmp_path: Path) -> None:
    async def scenario() -> None:
        manager = await World(tmp_path, directories=2).start()
        logs = await asyncio.gather(
            *(manager.creator.get_or_create(ORDERS, TOPIC_ID, CONFIG) for _ in range(5)),
        )
        assert len({id(log) for log in logs}) == 1
        with pytest.raises(KafkaError) as raised:
            await manager.creator.get_or_create(ORDERS, Uuid(bytes(16)), CONFIG)
        assert raised.value.code is ErrorCode.INCONSISTENT_TOPIC_ID
        await manager.shutdown()

    asyncio.run(scenario())


def test_locked_directory_is_named_in_the_error(tmp_path: Path) -> None:
    async def scenario() -> None:
        world = World(tmp_path)
        manager = await world.start()
        with pytest.raises(KafkaError, match="Another node is using this directory") as raised:
            await world.start()
        assert world.paths[0] in str(raised.value)
        await manager.shutdown()
        await (await world.start()).shutdown()

    asyncio.run(scenario())


def test_duplicate_log_directory_is_refused(tmp_path: Path) -> None:
    async def scenario() -> None:
        world = World(tmp_path)
        (tmp_path / "data1").mkdir()
        (tmp_path / "link").symlink_to(tmp_path / "data1")
        world.paths.append(str(tmp_path / "link"))
        with pytest.raises(KafkaError, match="twice"):
            await world.start()

    asyncio.run(scenario())


def test_load_handles_every_kind_of_folder(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        world = World(tmp_path)
        manager = await world.start()
        append(await manager.creator.get_or_create(ORDERS, TOPIC_ID, CONFIG), [(b"a", b"1")])
        await manager.shutdown()
        data = Path(world.paths[0])
        hexadecimal = "0" * 32
        doomed, stray = data / f"gone-0.{hexadecimal}-delete", data / f"lost-0.{hexadecimal}-stray"
        for folder in (doomed, stray, data / "__cluster_metadata-0", data / "remote-log-index-cache"):
            folder.mkdir()
        (data / "meta.properties").write_text("version=1\n")
        manager = await world.start()
        assert set(manager.table.current) == {ORDERS}
        world.clock.advance(59_999)
        await manager.upkeep.remove_deleted_files()
        assert doomed.exists()
        world.clock.advance(1)
        await manager.upkeep.remove_deleted_files()
        assert not doomed.exists()
        assert stray.exists()
        assert (data / "__cluster_metadata-0").exists()
        await manager.shutdown()

    asyncio.run(scenario())
    assert "stray" in caplog.text


def test_folder_that_is_not_a_partition_fails_the_start(tmp_path: Path) -> None:
    async def scenario() -> None:
        world = World(tmp_path)
        (tmp_path / "data1" / "lost+found").mkdir(parents=True)
        with pytest.raises(KafkaError, match=r"lost\+found"):
            await world.start()

    asyncio.run(scenario())


def test_partition_in_two_directories_keeps_the_longer_replica(tmp_path: Path) -> None:
    """A crash during a replica move leaves both."""

    async def scenario() -> None:
        world = World(tmp_path, directories=2)
        manager = await world.start()
        log = await manager.creator.get_or_create(ORDERS, TOPIC_ID, CONFIG)
        append(log, [(b"k", b"v")])
        await manager.shutdown()
        (other,) = [path for path in world.paths if not log.directory.startswith(path)]
        (Path(other) / "orders-0").mkdir()
        manager = await world.start()
        assert manager.table.current[ORDERS].directory == log.directory
        assert [record.value for record in stored(manager.table.current[ORDERS])] == [b"v"]
        assert [name for name in names(other) if name.endswith("-stray")]
        await manager.shutdown()

    asyncio.run(scenario())


def test_partition_with_two_topic_ids_fails_the_start(tmp_path: Path) -> None:
    async def scenario() -> None:
        world = World(tmp_path, directories=2)
        manager = await world.start()
        log = await manager.creator.get_or_create(ORDERS, TOPIC_ID, CONFIG)
        await manager.shutdown()
        (other,) = [path for path in world.paths if not log.directory.startswith(path)]
        (Path(other) / "orders-0").mkdir()
        write_topic_id(world.disk, f"{other}/orders-0", Uuid(b"another-topic-id"))
        with pytest.raises(KafkaError, match="is both in"):
            await world.start()

    asyncio.run(scenario())


def test_future_logs_of_stray_partitions_are_set_aside(tmp_path: Path) -> None:
    async def scenario() -> None:
        world = World(tmp_path, 2)
        manager = await world.start()
        (partition,) = partitions(1)
        log = await manager.creator.get_or_create(partition, TOPIC_ID, CONFIG)
        await manager.moves.begin(
            partition, str(next(path for path in world.paths if path not in log.directory))
        )
        await manager.shutdown()
        manager = world.manager()
        await manager.load(lambda topic: CONFIG, lambda partition, topic_id: True)
        assert not manager.table.current
        assert not manager.table.future
        assert [path for path in world.paths if not any(n.endswith("-stray") for n in names(path))] == []
        await manager.shutdown()

    asyncio.run(scenario())


def test_stray_replicas_are_set_aside(tmp_path: Path) -> None:
    async def scenario() -> None:
        world = World(tmp_path)
        manager = await world.start()
        for partition in partitions(2):
            await manager.creator.get_or_create(partition, TOPIC_ID, CONFIG)
        await manager.shutdown()
        manager = world.manager()
        await manager.load(lambda topic: CONFIG, lambda partition, topic_id: partition.partition == 1)
        assert set(manager.table.current) == {TopicPartition("t", 0)}
        assert folders(world.paths[0]) == ["t-0", "t-1"]
        assert any(name.endswith("-stray") for name in names(world.paths[0]))
        await manager.shutdown()
        manager = await world.start()
        assert set(manager.table.current) == {TopicPartition("t", 0)}
        await manager.shutdown()

    asyncio.run(scenario())


def test_deleted_partitions_are_removed_after_the_delay(tmp_path: Path) -> None:
    async def scenario() -> None:
        world = World(tmp_path)
        manager = await world.start(settings=LogManagerSettings(delete_delay_ms=5000))
        for partition in partitions(3):
            append(await manager.creator.get_or_create(partition, TOPIC_ID, CONFIG), [(b"a", b"1")])
        gone = manager.table.current[TopicPartition("t", 0)]
        await manager.delete(*partitions(2))
        data = Path(world.paths[0])
        assert set(manager.table.current) == {TopicPartition("t", 2)}
        assert (data / "recovery-point-offset-checkpoint").read_text().startswith("0\n1\nt 2 ")
        doomed = [data / name for name in names(world.paths[0]) if name.endswith("-delete")]
        assert len(doomed) == 2
        assert len(stored(gone)) == 1  # reads in progress may finish
        again = await manager.creator.get_or_create(TopicPartition("t", 0), Uuid(bytes(15) + b"x"), CONFIG)
        assert stored(again) == []
        world.clock.advance(5000)
        await manager.upkeep.remove_deleted_files()
        assert not any(path.exists() for path in doomed)
        await manager.delete(TopicPartition("unknown", 0))
        await manager.shutdown()

    asyncio.run(scenario())


def test_retention_deletes_old_segments(tmp_path: Path) -> None:
    async def scenario() -> None:
        world = World(tmp_path)
        config = replace(CONFIG, retention_ms=10_000, file_delete_delay_ms=1000)
        manager = await world.start()
        log = await manager.creator.get_or_create(ORDERS, TOPIC_ID, config)
        for number in range(3):
            append(log, [(b"k", b"%d" % number)], world.clock.time_ms())
            log.roll()
            world.clock.advance(6000)
        assert await manager.upkeep.retention() == 2
        assert [record.value for record in stored(log)] == [b"2"]
        assert any(name.endswith(".deleted") for name in names(log.directory))
        world.clock.advance(1000)
        await manager.upkeep.remove_deleted_files()
        assert not any(name.endswith(".deleted") for name in names(log.directory))
        await manager.shutdown()
        manager = await world.start(config)
        assert manager.table.current[ORDERS].log_start_offset == 2
        await manager.shutdown()

    asyncio.run(scenario())


def test_log_start_inside_a_segment_is_checkpointed(tmp_path: Path) -> None:
    async def scenario() -> None:
        world = World(tmp_path)
        manager = await world.start()
        log = await manager.creator.get_or_create(ORDERS, TOPIC_ID, CONFIG)
        append(log, [(b"a", b"%d" % number) for number in range(5)])
        log.delete_records_before(3)
        await manager.checkpoints.write_log_starts()
        checkpoint = Path(world.paths[0]) / "log-start-offset-checkpoint"
        assert checkpoint.read_text() == "0\n1\norders 0 3\n"
        await manager.shutdown()
        manager = await world.start()
        assert manager.table.current[ORDERS].log_start_offset == 3
        assert [record.offset for record in stored(manager.table.current[ORDERS])] == [3, 4]
        await manager.shutdown()

    asyncio.run(scenario())


def test_logs_are_flushed_when_due(tmp_path: Path) -> None:
    async def scenario() -> None:
        world = World(tmp_path)
        manager = await world.start()
        log = await manager.creator.get_or_create(ORDERS, TOPIC_ID, replace(CONFIG, flush_ms=5000))
        append(log, [(b"a", b"1")])
        await manager.upkeep.flush_due()
        assert log.flusher.recovery_point == 0
        world.clock.advance(5000)
        await manager.upkeep.flush_due()
        assert log.flusher.recovery_point == 1
        await manager.checkpoints.write_recovery_points()
        checkpoint = Path(world.paths[0]) / "recovery-point-offset-checkpoint"
        assert checkpoint.read_text() == "0\n1\norders 0 1\n"
        await manager.shutdown()

    asyncio.run(scenario())


def test_failed_directory_affects_only_its_partitions(tmp_path: Path) -> None:
    async def scenario() -> None:
        world = World(tmp_path, directories=2)
        manager = await world.start()
        for partition in partitions(4):
            append(await manager.creator.get_or_create(partition, TOPIC_ID, CONFIG), [(b"a", b"1")])
        first, second = world.paths
        lost = {log.topic_partition for log in manager.table.in_directory(first)}
        inside = f"{first}/t-0/00000000000000000000.log"
        manager.failures.report(LogDirectoryFailed(inside, "Input/output error"))
        manager.failures.report(LogDirectoryFailed(inside, "Input/output error"))
        (failure,) = world.failures
        assert (failure.path, set(failure.partitions), failure.last) == (first, lost, False)
        assert manager.directories[first].offline
        assert set(manager.table.current) == set(partitions(4)) - lost
        with pytest.raises(KafkaError):
            await manager.creator.get_or_create(partitions(1)[0], TOPIC_ID, CONFIG, is_new=False)
        new = await manager.creator.get_or_create(TopicPartition("new", 0), TOPIC_ID, CONFIG)
        assert new.directory.startswith(second)
        await manager.checkpoints.write_all()
        await manager.shutdown()
        assert not (Path(first) / ".kafka_cleanshutdown").exists()
        assert (Path(second) / ".kafka_cleanshutdown").exists()
        manager = await world.start()
        assert len(manager.table.current) == 5
        await manager.shutdown()

    asyncio.run(scenario())


def test_failure_of_the_last_directory_is_reported(tmp_path: Path) -> None:
    async def scenario() -> None:
        world = World(tmp_path)
        manager = await world.start()
        manager.failures.report(LogDirectoryFailed(world.paths[0], "gone"))
        assert world.failures[0].last
        with pytest.raises(KafkaError):
            await manager.creator.get_or_create(ORDERS, TOPIC_ID, CONFIG)

    asyncio.run(scenario())


@pytest.mark.skipif(os.geteuid() == 0, reason="root ignores file permissions")
def test_unreadable_directory_is_offline(tmp_path: Path) -> None:
    async def scenario() -> None:
        world = World(tmp_path, directories=2)
        (tmp_path / "data1").mkdir(mode=0)
        manager = await world.start()
        assert [directory.online for directory in manager.directories] == [False, True]
        await manager.shutdown()

    asyncio.run(scenario())


def test_log_directory_that_is_a_file_is_offline(tmp_path: Path) -> None:
    async def scenario() -> None:
        world = World(tmp_path, directories=2)
        (tmp_path / "data1").write_text("not a folder")
        manager = await world.start()
        assert [directory.online for directory in manager.directories] == [False, True]
        assert world.failures[0].path == world.paths[0]
        await manager.shutdown()
        world.paths.pop()
        with pytest.raises(KafkaError, match="None of the log directories"):
            await world.start()

    asyncio.run(scenario())


class SickDisk(PosixDisk):
    """A disk on which every operation under `sick` fails with `error`, once `error` is set."""

    def __init__(self, sick: str) -> None:
        self.sick = sick
        self.error: int | None = None

    def _check(self, path: str) -> None:
        if self.error is not None and path.startswith(self.sick):
            raise OSError(self.error, os.strerror(self.error), path)

    def open(self, path: str, *, create: bool = False, read_only: bool = False) -> File:
        self._check(path)
        return super().open(path, create=create, read_only=read_only)

    def makedirs(self, path: str) -> None:
        self._check(path)
        super().makedirs(path)

    def rename(self, source: str, target: str) -> None:
        self._check(source)
        super().rename(source, target)

    def write_atomic(self, path: str, data: bytes, *, private: bool = False) -> None:
        self._check(path)
        super().write_atomic(path, data, private=private)

    def listdir(self, path: str) -> list[str]:
        self._check(path)
        return super().listdir(path)


def sick_world(tmp_path: Path) -> tuple[World, SickDisk]:
    disk = SickDisk(str(tmp_path / "data1"))
    return World(tmp_path, directories=2, disk=disk), disk


def test_directory_that_fails_on_creation_goes_offline_and_another_is_used(tmp_path: Path) -> None:
    async def scenario() -> None:
        world, disk = sick_world(tmp_path)
        manager = await world.start()
        disk.error = errno.EIO
        log = await manager.creator.get_or_create(ORDERS, TOPIC_ID, CONFIG)
        assert log.directory.startswith(world.paths[1])
        assert [failure.path for failure in world.failures] == [world.paths[0]]
        await manager.shutdown()

    asyncio.run(scenario())


def test_full_disk_does_not_take_the_directory_offline(tmp_path: Path) -> None:
    async def scenario() -> None:
        world, disk = sick_world(tmp_path)
        manager = await world.start()
        disk.error = errno.ENOSPC
        log = await manager.creator.get_or_create(ORDERS, TOPIC_ID, CONFIG)
        assert log.directory.startswith(world.paths[1])
        await manager.checkpoints.write_all()
        assert world.failures == []
        disk.error = None
        log = await manager.creator.get_or_create(TopicPartition("other", 0), TOPIC_ID, CONFIG)
        assert log.directory.startswith(world.paths[0])
        await manager.shutdown()

    asyncio.run(scenario())


MAINTENANCE: dict[str, Callable[[LogManager], Awaitable[object]]] = {
    "checkpoints": lambda manager: manager.checkpoints.write_all(),
    "retention": lambda manager: manager.upkeep.retention(),
    "flush": lambda manager: manager.upkeep.flush_due(),
}


@pytest.mark.parametrize("work", MAINTENANCE)
def test_maintenance_reports_a_failed_disk_and_continues_with_the_others(tmp_path: Path, work: str) -> None:
    async def scenario() -> None:
        world, disk = sick_world(tmp_path)
        manager = await world.start()
        config = replace(CONFIG, retention_ms=1000, flush_ms=1000)
        for partition in partitions(4):
            log = await manager.creator.get_or_create(partition, TOPIC_ID, config)
            append(log, [(b"a", b"1")], world.clock.time_ms())
            log.roll()
        world.clock.advance(100_000)
        for log in manager.table.all():
            log.segments.close_files()
        disk.error = errno.EIO
        await MAINTENANCE[work](manager)
        assert [failure.path for failure in world.failures] == [world.paths[0]]
        assert len(manager.table.current) == 2
        if work == "retention":
            assert all(log.log_start_offset == 1 for log in manager.table.current.values())
        await manager.shutdown()

    asyncio.run(scenario())


def test_directory_that_fails_while_loading_is_offline(tmp_path: Path) -> None:
    async def scenario() -> None:
        world, disk = sick_world(tmp_path)
        manager = await world.start()
        for partition in partitions(4):
            append(await manager.creator.get_or_create(partition, TOPIC_ID, CONFIG), [(b"a", b"1")])
        await manager.shutdown()
        disk.sick, disk.error = str(tmp_path / "data1" / "t-0"), errno.EIO
        manager = await world.start()
        assert len(manager.table.current) == 2
        assert [failure.path for failure in world.failures] == [world.paths[0]]
        await manager.shutdown()
        assert not (tmp_path / "data1" / ".kafka_cleanshutdown").exists()

    asyncio.run(scenario())


def test_failed_start_releases_the_directories(tmp_path: Path) -> None:
    async def scenario() -> None:
        world = World(tmp_path, directories=2)
        foreign = tmp_path / "data2" / "foreign"
        foreign.mkdir(parents=True)
        with pytest.raises(KafkaError):
            await world.start()
        foreign.rmdir()
        blocker = PosixDisk().lock(str(tmp_path / "data2" / ".lock"))
        with pytest.raises(KafkaError, match="data2"):
            await world.start()
        blocker.release()
        await (await world.start()).shutdown()

    asyncio.run(scenario())


def test_truncation_lowers_the_checkpoints(tmp_path: Path) -> None:
    async def scenario() -> None:
        world = World(tmp_path)
        manager = await world.start()
        log = await manager.creator.get_or_create(ORDERS, TOPIC_ID, CONFIG)
        for number in range(4):
            append(log, [(b"k", b"%d" % number)])
            log.roll()
        log.flusher.flush()
        manager.directories[world.paths[0]].cleaner_offsets[ORDERS] = 4
        await manager.truncate_to(ORDERS, 2)
        assert log.log_end_offset == 2
        data = Path(world.paths[0])
        assert (data / "recovery-point-offset-checkpoint").read_text() == "0\n1\norders 0 2\n"
        assert manager.directories[world.paths[0]].cleaner_offsets[ORDERS] <= 2
        await manager.truncate_fully_and_start_at(ORDERS, 100)
        assert (log.log_start_offset, log.log_end_offset) == (100, 100)
        await manager.shutdown()

    asyncio.run(scenario())


def test_config_updates_reach_the_log(tmp_path: Path) -> None:
    async def scenario() -> None:
        manager = await World(tmp_path).start()
        log = await manager.creator.get_or_create(ORDERS, TOPIC_ID, CONFIG)
        config = replace(CONFIG, retention_ms=1)
        manager.update_config(ORDERS, config)
        assert log.config is config
        manager.update_config(TopicPartition("unknown", 0), config)
        await manager.shutdown()

    asyncio.run(scenario())
