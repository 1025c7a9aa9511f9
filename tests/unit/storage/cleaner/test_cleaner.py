"""Compaction of real logs: retained records, scheduling, and recovery from a crash."""

from __future__ import annotations

import asyncio
import random
import shutil
import sys
import tempfile
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moldau.base.ids import TopicPartition
from moldau.protocol.records import BatchHeader, Record, build_batch, iter_batches
from moldau.storage.cleaner.job import CleanerSettings
from moldau.storage.disk.disk import File, PosixDisk
from moldau.storage.log.append import Origin
from moldau.storage.log.config import LogConfig
from moldau.storage.log.log import Log
from moldau.storage.manager.manager import LogManager
from tests.unit.storage.managed_logs import (
    COMPACT,
    ORDERS,
    TOPIC_ID,
    World,
    append,
    damage,
    latest,
    names,
    stored,
)

KEYS = [b"a", b"b", b"c", b"d", b"e"]


async def open_log(world: World, config: LogConfig = COMPACT, **options: Any) -> tuple[LogManager, Log]:
    manager = await world.start(config, **options)
    return manager, await manager.creator.get_or_create(ORDERS, TOPIC_ID, config)


def fill(log: Log, *values: tuple[bytes | None, bytes | None], **options: Any) -> None:
    """Append one batch and roll the log."""
    append(log, values, **options)
    log.roll()


def test_reader_from_the_beginning_sees_the_last_value_of_each_key(tmp_path: Path) -> None:
    async def scenario() -> None:
        world = World(tmp_path)
        manager, log = await open_log(world)
        fill(log, (b"123", b'{"NB":"8"}'), (b"124", b'{"NB":"2"}'))
        fill(log, (b"123", b'{"NB":"7"}'))
        fill(log, (b"125", b'{"NB":"1"}'), (b"123", b'{"NB":"6"}'))
        append(log, [(b"124", b'{"NB":"0"}')])
        assert await manager.cleaner.clean_due() == 1
        assert [(record.offset, record.key, record.value) for record in stored(log)] == [
            (1, b"124", b'{"NB":"2"}'),
            (3, b"125", b'{"NB":"1"}'),
            (4, b"123", b'{"NB":"6"}'),
            (5, b"124", b'{"NB":"0"}'),  # The active segment is not cleaned.
        ]
        checkpoint = Path(world.paths[0]) / "cleaner-offset-checkpoint"
        assert checkpoint.read_text() == "0\n1\norders 0 5\n"
        assert await manager.cleaner.clean_due() == 0
        assert [segment.base_offset for segment in log.segments.items] == [0, 5]
        await manager.shutdown()

    asyncio.run(scenario())


def test_only_compacted_topics_are_cleaned(tmp_path: Path) -> None:
    async def scenario() -> None:
        manager, log = await open_log(World(tmp_path), LogConfig(min_cleanable_dirty_ratio=0.0))
        fill(log, (b"a", b"1"))
        fill(log, (b"a", b"2"))
        assert await manager.cleaner.clean_due() == 0
        manager.update_config(ORDERS, COMPACT)
        assert await manager.cleaner.clean_due() == 1
        await manager.shutdown()

    asyncio.run(scenario())


def test_tombstones_are_removed_after_delete_retention_ms(tmp_path: Path) -> None:
    async def scenario() -> None:
        world = World(tmp_path)
        manager, log = await open_log(world)
        fill(log, (b"a", b"1"), (b"b", b"1"))
        fill(log, (b"a", None))
        await manager.cleaner.clean_due()
        assert latest(stored(log)) == {b"b": b"1", b"a": None}
        world.clock.advance(10_000)
        fill(log, (b"c", b"1"))
        await manager.cleaner.clean_due()
        assert latest(stored(log)) == {b"b": b"1", b"c": b"1"}
        assert log.log_end_offset == 4
        await manager.shutdown()

    asyncio.run(scenario())


def test_log_is_cleaned_by_dirty_ratio_or_max_compaction_lag(tmp_path: Path) -> None:
    async def scenario() -> None:
        world = World(tmp_path)
        config = replace(COMPACT, min_compaction_lag_ms=5000)
        manager, log = await open_log(world, config)
        now = world.clock.time_ms()
        fill(log, (b"a", b"1"), timestamp=now)
        fill(log, (b"a", b"2"), timestamp=now)
        assert await manager.cleaner.clean_due() == 0
        world.clock.advance(5000)
        assert await manager.cleaner.clean_due() == 1
        lazy = replace(COMPACT, min_cleanable_dirty_ratio=0.9, max_compaction_lag_ms=7000)
        manager.update_config(ORDERS, lazy)
        fill(log, (b"a", b"3"), timestamp=world.clock.time_ms())
        assert await manager.cleaner.clean_due() == 0
        world.clock.advance(7001)
        assert await manager.cleaner.clean_due() == 1
        await manager.shutdown()

    asyncio.run(scenario())


def test_dirtiest_log_is_cleaned_first(tmp_path: Path) -> None:
    async def scenario() -> None:
        manager, log = await open_log(World(tmp_path))
        other = await manager.creator.get_or_create(TopicPartition("other", 0), TOPIC_ID, COMPACT)
        for number in range(4):
            fill(log, (b"a", b"%d" % number))
        await manager.cleaner.clean_due()
        fill(log, (b"a", b"last"))
        fill(other, (b"b", b"1"))
        order: list[str] = []
        run = manager.cleaner._runner.run

        async def noted(job: Any, swap: Any) -> Any:
            order.append(job.topic_partition.topic)
            return await run(job, swap)

        manager.cleaner._runner.run = noted  # type: ignore[method-assign]
        await manager.cleaner.clean_due()
        assert order == ["other", "orders"]
        await manager.shutdown()

    asyncio.run(scenario())


def test_cleanup_policy_compact_delete_compacts_and_expires(tmp_path: Path) -> None:
    async def scenario() -> None:
        world = World(tmp_path)
        config = replace(COMPACT, cleanup_policy=frozenset({"compact", "delete"}), retention_ms=10_000)
        manager, log = await open_log(world, config)
        fill(log, (b"a", b"1"), timestamp=world.clock.time_ms())
        world.clock.advance(6000)
        fill(log, (b"b", b"1"), (b"b", b"2"), timestamp=world.clock.time_ms())
        world.clock.advance(6000)
        assert await manager.upkeep.retention() == 1
        await manager.cleaner.clean_due()
        assert [(record.offset, record.value) for record in stored(log)] == [(2, b"2")]
        assert log.log_start_offset == 1
        await manager.shutdown()

    asyncio.run(scenario())


def test_compacted_log_has_no_retention_by_time(tmp_path: Path) -> None:
    async def scenario() -> None:
        world = World(tmp_path)
        manager, log = await open_log(world, replace(COMPACT, retention_ms=1))
        fill(log, (b"a", b"1"), timestamp=world.clock.time_ms())
        world.clock.advance(10**9)
        assert await manager.upkeep.retention() == 0
        log.delete_records_before(1)
        assert await manager.upkeep.retention() == 1
        await manager.shutdown()

    asyncio.run(scenario())


def test_small_segments_are_merged(tmp_path: Path) -> None:
    async def scenario() -> None:
        manager, log = await open_log(World(tmp_path), replace(COMPACT, segment_bytes=450))
        for number in range(12):
            fill(log, (b"key-%d" % number, b"x" * 30))
        sizes = [segment.size for segment in log.segments.items[:-1]]
        await manager.cleaner.clean_due()
        assert len(log.segments.items) < 6
        assert sum(segment.size for segment in log.segments.items) == sum(sizes)
        assert all(segment.size <= 450 for segment in log.segments.items)
        assert len(stored(log)) == 12
        await manager.shutdown()

    asyncio.run(scenario())


def test_offset_map_smaller_than_the_keys_takes_several_rounds(tmp_path: Path) -> None:
    async def scenario() -> None:
        settings = CleanerSettings(dedupe_buffer_size=25 * 7, io_buffer_load_factor=0.9)
        manager, log = await open_log(World(tmp_path), cleaner_settings=settings)
        expected = {}
        for value in range(3):
            for start in range(0, 20, 5):
                pairs = [(b"k%d" % number, b"%d" % value) for number in range(start, start + 5)]
                fill(log, *pairs)
                expected.update(pairs)
        assert await manager.cleaner.clean_due() > 3
        assert latest(stored(log)) == expected
        assert len(stored(log)) == 20
        assert await manager.cleaner.clean_due() == 0
        await manager.shutdown()

    asyncio.run(scenario())


def test_batch_with_more_keys_than_the_offset_map_is_cleaned(tmp_path: Path) -> None:
    async def scenario() -> None:
        settings = CleanerSettings(dedupe_buffer_size=25 * 5)
        manager, log = await open_log(World(tmp_path), cleaner_settings=settings)
        for value in (b"1", b"2"):
            fill(log, *((b"k%d" % number, value) for number in range(30)))
        assert await manager.cleaner.clean_due() > 10
        assert [record.offset for record in stored(log)] == list(range(30, 60))
        await manager.shutdown()

    asyncio.run(scenario())


def test_read_in_progress_survives_the_replacement_of_its_segment(tmp_path: Path) -> None:
    async def scenario() -> None:
        world = World(tmp_path)
        manager, log = await open_log(world)
        value = bytes(200_000)
        for number in range(3):
            fill(log, (b"a", value + b"%d" % number))
        copy = b"".join(log.reader.read(0, 10**6, upper_bound=3, blocking=True).parts)
        under_way = log.reader.read(0, 10**6, upper_bound=3, blocking=False) or log.reader.read(
            0, 10**6, upper_bound=3, blocking=True
        )
        await manager.cleaner.clean_due()
        world.clock.advance(60_000)
        await manager.upkeep.remove_deleted_files()
        assert not any(name.endswith(".deleted") for name in names(log.directory))
        assert b"".join(under_way.parts) == copy
        assert [record.offset for record in stored(log)] == [2]
        await manager.shutdown()

    asyncio.run(scenario())


def test_concurrent_readers_never_see_a_partial_swap(tmp_path: Path) -> None:
    async def scenario() -> None:
        world = World(tmp_path)
        manager, log = await open_log(world, replace(COMPACT, segment_bytes=2000, file_delete_delay_ms=0))
        for _ in range(10):
            fill(log, *((key, bytes(50)) for key in KEYS))
        problems: list[Exception] = []
        stop = threading.Event()

        def read() -> None:
            chance = random.Random(1)
            while not stop.is_set():
                end = log.log_end_offset
                try:
                    assert (
                        log.reader.read(chance.randrange(end), 500, upper_bound=end, blocking=True)
                        is not None
                    )
                    assert log.reader.offset_for_timestamp(0) is not None
                except Exception as error:
                    problems.append(error)

        interval = sys.getswitchinterval()
        sys.setswitchinterval(1e-4)
        threads = [threading.Thread(target=read) for _ in range(2)]
        try:
            for thread in threads:
                thread.start()
            for _ in range(10):
                fill(log, *((key, bytes(50)) for key in KEYS))
                await manager.cleaner.clean_due()
                await manager.upkeep.remove_deleted_files()
        finally:
            stop.set()
            for thread in threads:
                thread.join()
            sys.setswitchinterval(interval)
        assert problems == []
        assert world.failures == []
        await manager.shutdown()

    asyncio.run(scenario())


@pytest.mark.parametrize("codec", [0, 1, 2, 3, 4])
def test_compaction_keeps_the_compression_codec(tmp_path: Path, codec: int) -> None:
    async def scenario() -> None:
        manager, log = await open_log(World(tmp_path))
        fill(log, (b"a", b"x" * 1000), (b"b", b"y" * 1000), codec=codec)
        fill(log, (b"a", b"z"), codec=codec)
        await manager.cleaner.clean_due()
        data = b"".join(log.reader.read(0, 10**6, upper_bound=3, blocking=True).parts)
        assert [header.codec for _, header in iter_batches(data)] == [codec, codec]
        assert latest(stored(log)) == {b"a": b"z", b"b": b"y" * 1000}
        await manager.shutdown()

    asyncio.run(scenario())


def producer_batch(sequence: int, key: bytes, value: bytes, transactional: bool = False) -> bytearray:
    return build_batch(
        [Record(0, 1_700_000_000_000, key, value)], producer_id=9, producer_epoch=0, base_sequence=sequence,
        is_transactional=transactional,
    )  # fmt: skip


def test_compaction_keeps_the_sequence_of_an_active_producer(tmp_path: Path) -> None:
    async def scenario() -> None:
        world = World(tmp_path)
        manager, log = await open_log(world)
        log.append_as_leader(producer_batch(0, b"a", b"1"), 0)
        log.roll()
        fill(log, (b"a", b"2"))
        log.high_watermark = log.log_end_offset
        await manager.cleaner.clean_due()
        assert latest(stored(log)) == {b"a": b"2"}
        manager.directories[world.paths[0]].release()
        for name in names(log.directory):
            if name.endswith(".snapshot"):
                world.disk.remove(f"{log.directory}/{name}")
        manager = await world.start(COMPACT)
        log = manager.table.current[ORDERS]
        assert log.append_as_leader(producer_batch(0, b"a", b"1"), 0).duplicate
        log.append_as_leader(producer_batch(1, b"a", b"3"), 0)
        await manager.shutdown()

    asyncio.run(scenario())


def control(kind: int) -> bytearray:
    record = Record(0, 1_700_000_000_000, bytes([0, 0, 0, kind]), bytes(6))
    return build_batch([record], producer_id=9, producer_epoch=0, is_control=True, is_transactional=True)


def test_records_of_aborted_transactions_are_removed(tmp_path: Path) -> None:
    async def scenario() -> None:
        world = World(tmp_path)
        manager, log = await open_log(world)
        log.append_as_leader(producer_batch(0, b"a", b"committed", True), 0)
        log.append_as_leader(control(1), 0, origin=Origin.COORDINATOR)
        log.append_as_leader(producer_batch(1, b"a", b"aborted", True), 0)
        log.roll()
        log.append_as_leader(control(0), 0, origin=Origin.COORDINATOR)
        fill(log, (b"b", b"1"))
        log.high_watermark = log.log_end_offset
        assert len(log.reader.aborted_transactions(0, 10)) == 1
        await manager.cleaner.clean_due()
        assert latest(stored(log)) == {b"a": b"committed", b"b": b"1"}
        assert len(log.reader.aborted_transactions(0, 10)) == 1
        # The emptied batch still holds the producer's last sequence number; a newer one takes over.
        log.append_as_leader(producer_batch(2, b"c", b"committed", True), 0)
        log.append_as_leader(control(1), 0, origin=Origin.COORDINATOR)
        for number in range(3):
            fill(log, (b"d", b"%d" % number))
            await manager.cleaner.clean_due()
            world.clock.advance(10_000)
        assert log.reader.aborted_transactions(0, 10) == []
        assert latest(stored(log)) == {b"a": b"committed", b"b": b"1", b"c": b"committed", b"d": b"2"}
        assert [header.base_offset for header in headers(log) if header.is_control] == [1, 6]
        await manager.shutdown()

    asyncio.run(scenario())


def headers(log: Log) -> list[BatchHeader]:
    paths = [segment.files.log_path for segment in log.segments.items]
    return [header for path in paths for _, header in iter_batches(Path(path).read_bytes())]


def test_open_transaction_limits_cleaning(tmp_path: Path) -> None:
    async def scenario() -> None:
        manager, log = await open_log(World(tmp_path))
        fill(log, (b"a", b"1"))
        log.append_as_leader(producer_batch(0, b"a", b"open", True), 0)
        fill(log, (b"a", b"2"))
        log.high_watermark = log.log_end_offset
        await manager.cleaner.clean_due()
        assert len(stored(log)) == 3
        await manager.shutdown()

    asyncio.run(scenario())


def test_damaged_log_is_uncleanable_and_others_are_compacted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        manager, log = await open_log(World(tmp_path))
        other = await manager.creator.get_or_create(TopicPartition("other", 0), TOPIC_ID, COMPACT)
        for each in (log, other):
            fill(each, (b"a", b"1"))
            fill(each, (b"a", b"2"))
        path = log.segments.items[0].files.log_path
        damage(path)
        assert await manager.cleaner.clean_due() == 1
        assert manager.cleaner.uncleanable == {ORDERS}
        assert len(stored(other)) == 1
        fill(log, (b"a", b"3"))
        assert await manager.cleaner.clean_due() == 0
        await manager.delete(ORDERS)
        await manager.cleaner.clean_due()
        assert manager.cleaner.uncleanable == set()
        await manager.shutdown()
        assert f"{path} at position 0" in caplog.text

    asyncio.run(scenario())


def test_log_cleaner_enable_false_disables_the_cleaner(tmp_path: Path) -> None:
    async def scenario() -> None:
        manager, log = await open_log(World(tmp_path), cleaner_settings=CleanerSettings(enable=False))
        fill(log, (b"a", b"1"))
        assert await manager.cleaner.clean_due() == 0
        await manager.shutdown()

    asyncio.run(scenario())


def test_paused_log_is_not_cleaned(tmp_path: Path) -> None:
    async def scenario() -> None:
        manager, log = await open_log(World(tmp_path))
        fill(log, (b"a", b"1"))
        await manager.cleaner.pause(ORDERS)
        await manager.cleaner.pause(ORDERS)
        manager.cleaner.resume(ORDERS)
        assert await manager.cleaner.clean_due() == 0
        manager.cleaner.resume(ORDERS)
        assert await manager.cleaner.clean_due() == 1
        await manager.shutdown()

    asyncio.run(scenario())


class Model:
    """The appended records and those that compaction must retain."""

    def __init__(self) -> None:
        self.history: dict[int, Record] = {}

    def append(self, log: Log, pairs: list[tuple[bytes, bytes | None]], timestamp: int, codec: int) -> None:
        for number, (key, value) in enumerate(pairs):
            offset = log.log_end_offset + number
            self.history[offset] = Record(offset, timestamp, key, value, [])
        append(log, pairs, timestamp, codec=codec)

    def check(self, log: Log) -> None:
        found = stored(log)
        offsets = [record.offset for record in found]
        assert offsets == sorted(set(offsets))
        for record in found:
            assert record._replace(headers=[]) == self.history[record.offset]
        expected = {key: value for key, value in latest(self.history.values()).items() if value is not None}
        actual = {key: value for key, value in latest(found).items() if value is not None}
        assert actual == expected
        assert log.log_end_offset == len(self.history)
        for offset in range(log.log_end_offset):
            result = log.reader.read(offset, 1, upper_bound=log.log_end_offset, blocking=True)
            assert result is not None
            later = [record.offset for record in found if record.offset >= offset]
            assert result.parts or not later
            assert not result.parts or result.next_offset > offset


pairs = st.lists(
    st.tuples(st.sampled_from(KEYS), st.one_of(st.none(), st.binary(max_size=20))), min_size=1, max_size=4
)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("append"), pairs, st.sampled_from([0, 3, 4])),
        st.tuples(st.sampled_from(["roll", "clean", "reopen", "crash"])),
        st.tuples(st.just("wait"), st.integers(1, 20_000)),
    ),
    max_size=30,
)


@settings(max_examples=60, deadline=None)
@given(steps, st.sampled_from([300, 600, 10**6]), st.sampled_from([25 * 5, 10**6]))
def test_compaction_retains_the_last_value_of_each_key_in_any_history(
    history: list[Any], segment_bytes: int, memory: int
) -> None:
    async def scenario(folder: Path) -> None:
        world = World(folder)
        config = replace(COMPACT, segment_bytes=segment_bytes)
        options = {"cleaner_settings": CleanerSettings(dedupe_buffer_size=memory)}
        manager, log = await open_log(world, config, **options)
        model = Model()
        for step, *arguments in history:
            if step == "append":
                model.append(log, arguments[0], world.clock.time_ms(), arguments[1])
            elif step == "roll":
                log.roll()
            elif step == "clean":
                await manager.cleaner.clean_due()
                assert await manager.cleaner.clean_due() == 0
            elif step == "wait":
                world.clock.advance(arguments[0])
            else:
                if step == "reopen":
                    await manager.shutdown()
                else:
                    manager.directories[world.paths[0]].release()
                manager = await world.start(config, **options)
                log = manager.table.current[ORDERS]
                log.high_watermark = log.log_end_offset
            model.check(log)
        world.clock.advance(20_000)
        log.roll()
        await manager.cleaner.clean_due()
        model.check(log)
        records = [record for record in stored(log) if record.value is not None]
        assert len(records) == len({record.key for record in records})
        await manager.shutdown()

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(scenario(Path(folder)))


class Crash(BaseException):
    """The simulated crash of the process."""


class CrashingDisk(PosixDisk):
    """A disk that raises `Crash` after a number of changes."""

    def __init__(self) -> None:
        self.left = 10**9

    def _step(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise Crash

    def open(self, path: str, *, create: bool = False, read_only: bool = False) -> File:
        if create:
            self._step()
        return super().open(path, create=create, read_only=read_only)

    def rename(self, source: str, target: str) -> None:
        self._step()
        super().rename(source, target)

    def remove(self, path: str) -> None:
        self._step()
        super().remove(path)

    def write_atomic(self, path: str, data: bytes, *, private: bool = False) -> None:
        self._step()
        super().write_atomic(path, data, private=private)

    def set_modified(self, path: str, time_ms: int) -> None:
        self._step()
        super().set_modified(path, time_ms)


async def build_history(world: World, config: LogConfig) -> Model:
    manager, log = await open_log(world, config)
    model = Model()
    for number in range(6):
        content: list[tuple[bytes, bytes | None]] = [
            (KEYS[number % 5], b"%d" % number),
            (KEYS[number % 3], None if number % 4 == 0 else b"x%d" % number),
        ]
        model.append(log, content, world.clock.time_ms(), 0)
        log.roll()
    model.append(log, [(b"z", b"active")], world.clock.time_ms(), 0)
    await manager.shutdown()
    return model


@pytest.mark.parametrize("segment_bytes", [200, 10**6])
def test_crash_at_any_step_of_compaction_loses_no_record(tmp_path: Path, segment_bytes: int) -> None:
    config = replace(COMPACT, segment_bytes=segment_bytes)
    template = tmp_path / "template"
    model = asyncio.run(build_history(World(template), config))

    async def crash_after(changes: int, folder: Path) -> bool:
        disk = CrashingDisk()
        world = World(folder, disk=disk)
        manager = await world.start(config)
        disk.left = changes
        crashed = False
        try:
            await manager.cleaner.clean_due()
        except Crash:
            crashed = True
        manager.directories[world.paths[0]].release()
        return crashed

    async def look_after(folder: Path) -> None:
        world = World(folder)
        manager = await world.start(config)
        log = manager.table.current[ORDERS]
        log.high_watermark = log.log_end_offset
        model.check(log)
        leftovers = (".cleaned", ".swap", ".deleted")
        assert not [name for name in names(log.directory) if name.endswith(leftovers)]
        await manager.cleaner.clean_due()
        model.check(log)
        assert len(stored(log)) == len({record.key for record in stored(log)})
        manager.directories[world.paths[0]].release()

    changes, crashed = 0, True
    while crashed:
        folder = tmp_path / f"crash{changes}"
        shutil.copytree(template, folder)
        crashed = asyncio.run(crash_after(changes, folder))
        asyncio.run(look_after(folder))
        shutil.rmtree(folder)
        changes += 1
    assert changes > 30


def test_cleaner_configs_are_passed_to_the_job(tmp_path: Path) -> None:
    async def scenario() -> None:
        settings = CleanerSettings(threads=2, dedupe_buffer_size=1000, io_max_bytes_per_second=500.0)
        manager, log = await open_log(World(tmp_path), cleaner_settings=settings)
        fill(log, (b"a", b"1"))
        jobs: list[Any] = []
        run: Callable[..., Any] = manager.cleaner._runner.run

        async def noted(job: Any, swap: Any) -> Any:
            jobs.append(job)
            return await run(job, swap)

        manager.cleaner._runner.run = noted  # type: ignore[method-assign]
        await manager.cleaner.clean_due()
        assert [(job.dedupe_buffer_size, job.io_max_bytes_per_second) for job in jobs] == [(500, 250.0)]
        await manager.shutdown()

    asyncio.run(scenario())
