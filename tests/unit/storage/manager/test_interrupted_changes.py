"""Interrupted and failed operations of the log manager: no log is lost, and none gets another log's data."""

from __future__ import annotations

import asyncio
import errno
import threading
from collections.abc import Callable
from pathlib import Path
from typing import ParamSpec, TypeVar

import pytest

from moldau.base.errors import KafkaError
from moldau.base.ids import TopicPartition, Uuid
from moldau.base.pool import InlinePool, ThreadPool
from moldau.storage.directories.directory import LogDirectory
from moldau.storage.disk.disk import File, PosixDisk
from moldau.storage.log.config import LogConfig
from tests.unit.storage.managed_logs import ORDERS, TOPIC_ID, World, append, folders, names, stored

P = ParamSpec("P")
R = TypeVar("R")

CONFIG = LogConfig()
NEXT_ID = Uuid(b"another-id-16-by")


class _Disk(PosixDisk):
    """A disk that is full for the paths for which `full` returns true."""

    def __init__(self) -> None:
        self.full: Callable[[str], bool] = lambda path: False
        self.broken_removals = False
        self.synced_folders: list[str] = []

    def _check(self, path: str) -> None:
        if self.full(path):
            raise OSError(errno.ENOSPC, "No space left on device", path)

    def open(self, path: str, *, create: bool = False, read_only: bool = False) -> File:
        if create:
            self._check(path)
        return super().open(path, create=create, read_only=read_only)

    def write_atomic(self, path: str, data: bytes, *, private: bool = False) -> None:
        self._check(path)
        super().write_atomic(path, data, private=private)

    def remove(self, path: str) -> None:
        if self.broken_removals:
            raise OSError(errno.EROFS, "Read-only file system", path)
        super().remove(path)

    def sync_dir(self, path: str) -> None:
        self.synced_folders.append(path)
        super().sync_dir(path)


def test_folder_of_a_failed_creation_is_removed(tmp_path: Path) -> None:
    async def scenario() -> None:
        disk = _Disk()
        world = World(tmp_path, directories=2, disk=disk)
        manager = await world.start()
        disk.full = lambda path: path.startswith(world.paths[0]) and path.endswith("partition.metadata")
        log = await manager.creator.get_or_create(ORDERS, TOPIC_ID, CONFIG)
        assert log.directory.startswith(world.paths[1])
        append(log, [(b"k", b"v")])
        assert folders(world.paths[0]) == []
        manager.directories.release()
        disk.full = lambda path: False
        manager = await world.start()
        assert len(stored(manager.table.current[ORDERS])) == 1
        await manager.shutdown()

    asyncio.run(scenario())


def test_shutdown_without_log_start_checkpoint_is_not_clean(tmp_path: Path) -> None:
    async def scenario() -> None:
        disk = _Disk()
        world = World(tmp_path, disk=disk)
        manager = await world.start()
        await manager.creator.get_or_create(ORDERS, TOPIC_ID, CONFIG)
        disk.full = lambda path: path.endswith("log-start-offset-checkpoint")
        await manager.shutdown()
        assert ".kafka_cleanshutdown" not in names(world.paths[0])

    asyncio.run(scenario())


def test_clean_shutdown_file_is_removed_durably(tmp_path: Path) -> None:
    async def scenario() -> None:
        disk = _Disk()
        world = World(tmp_path, disk=disk)
        await (await world.start()).shutdown()
        disk.synced_folders.clear()
        await world.start()
        assert not any(".kafka_cleanshutdown" in names(path) for path in world.paths)
        assert set(world.paths) <= set(disk.synced_folders)

    asyncio.run(scenario())


def test_aborted_start_changes_nothing(tmp_path: Path) -> None:
    def everything(folder: str) -> dict[str, bytes]:
        return {each.name: each.read_bytes() for each in Path(folder).iterdir() if each.is_file()}

    async def scenario() -> None:
        world = World(tmp_path)
        manager = await world.start()
        log = await manager.creator.get_or_create(ORDERS, TOPIC_ID, CONFIG)
        append(log, [(b"a", b"1"), (b"b", b"2")])
        log.high_watermark = 2
        log.delete_records_before(1)
        await manager.shutdown(broker_epoch=7)
        before = everything(world.paths[0])
        manager = world.manager()
        await manager.claim()
        await manager.shutdown()
        assert everything(world.paths[0]) == before
        (Path(world.paths[0]) / "nobody knows").mkdir()
        with pytest.raises(KafkaError):
            await world.start()
        (Path(world.paths[0]) / "nobody knows").rmdir()
        assert everything(world.paths[0]) == before
        manager = await world.start()
        assert manager.previous_broker_epoch == 7
        assert manager.table.current[ORDERS].log_start_offset == 1
        await manager.shutdown()

    asyncio.run(scenario())


def test_failed_file_removal_takes_the_directory_offline(tmp_path: Path) -> None:
    async def scenario() -> None:
        disk = _Disk()
        world = World(tmp_path, disk=disk)
        manager = await world.start()
        config = LogConfig(segment_bytes=100, retention_bytes=0, file_delete_delay_ms=0)
        log = await manager.creator.get_or_create(ORDERS, TOPIC_ID, config)
        append(log, [(b"k", b"v")])
        assert await manager.upkeep.retention()
        disk.broken_removals = True
        await manager.upkeep.remove_deleted_files()
        assert [failure.path for failure in world.failures] == world.paths

    asyncio.run(scenario())


class _SlowPool(InlinePool):
    """A pool whose jobs wait for `gate`."""

    def __init__(self) -> None:
        self.gate = asyncio.Event()
        self.gate.set()

    async def run(self, fn: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        await self.gate.wait()
        return await super().run(fn, *args, **kwargs)


def test_checkpoint_has_the_offsets_at_the_time_of_writing(tmp_path: Path) -> None:
    async def scenario() -> None:
        world = World(tmp_path, directories=2)
        manager = await world.start()
        other = await manager.creator.get_or_create(TopicPartition("other", 0), TOPIC_ID, CONFIG)
        log = await manager.creator.get_or_create(ORDERS, TOPIC_ID, CONFIG)
        append(log, [(b"k", b"v")] * 5)
        log.delete_records_before(3)
        first, second = manager.directories.of(other), manager.directories.of(log)
        slow = _SlowPool()
        first._pool = slow
        slow.gate.clear()
        writing = asyncio.create_task(manager.checkpoints.write_log_starts())
        await asyncio.sleep(0)
        await manager.delete(ORDERS)
        slow.gate.set()
        await writing
        assert "orders" not in (Path(second.path) / "log-start-offset-checkpoint").read_text()
        await manager.shutdown()

    asyncio.run(scenario())


class _Waiting(PosixDisk):
    """A disk on which the first checkpoint write waits for `go`."""

    def __init__(self) -> None:
        self.go: threading.Event | None = None
        self.began = threading.Event()

    def write_atomic(self, path: str, data: bytes, *, private: bool = False) -> None:
        go, self.go = self.go, None
        if go is not None:
            self.began.set()
            go.wait(10)
        super().write_atomic(path, data, private=private)


def test_cancelled_checkpoint_write_does_not_overwrite_a_later_one(tmp_path: Path) -> None:
    async def scenario() -> None:
        disk, pool, go = _Waiting(), ThreadPool(2), threading.Event()
        directory = LogDirectory(disk, pool, str(tmp_path))
        disk.go = go
        name = "recovery-point-offset-checkpoint"
        first = asyncio.create_task(directory.write(name, lambda: {ORDERS: 1}))
        while not disk.began.is_set():
            await asyncio.sleep(0.001)
        first.cancel()
        second = asyncio.create_task(directory.write(name, lambda: {ORDERS: 2}))
        await asyncio.sleep(0.05)
        go.set()
        await second
        pool.close()
        assert (tmp_path / name).read_text() == "0\n1\norders 0 2\n"

    asyncio.run(scenario())


def test_new_log_does_not_inherit_the_log_start_of_a_deleted_one(tmp_path: Path) -> None:
    async def scenario() -> None:
        disk = _Disk()
        world = World(tmp_path, disk=disk)
        manager = await world.start()
        log = await manager.creator.get_or_create(ORDERS, TOPIC_ID, CONFIG)
        append(log, [(b"k", b"v")] * 5)
        log.delete_records_before(3)
        await manager.checkpoints.write_all()
        disk.full = lambda path: path.endswith("-checkpoint")
        await manager.delete(ORDERS)
        disk.full = lambda path: False
        log = await manager.creator.get_or_create(ORDERS, NEXT_ID, CONFIG)
        append(log, [(b"k", b"v")])
        manager.directories.release()
        manager = await world.start()
        assert [record.offset for record in stored(manager.table.current[ORDERS])] == [0]
        await manager.shutdown()

    asyncio.run(scenario())
