"""The cleaner process: same result as inline, exits when idle, may be killed at any time."""

from __future__ import annotations

import asyncio
import io
import json
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from moldau.base.clock import ManualClock
from moldau.base.ids import TopicPartition
from moldau.storage.cleaner.job import CleanedGroup, CleanerSettings, CleanJob, LastRecord
from moldau.storage.cleaner.process import Throttle, serve
from moldau.storage.cleaner.runner import ProcessRunner
from moldau.storage.disk.disk import PosixDisk
from moldau.storage.log.config import LogConfig
from moldau.storage.log.log import Log
from moldau.storage.manager.manager import LogManager
from moldau.storage.segment.txn_index import AbortedTransaction
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

#: Slow enough that a job is caught in the middle.
SLOW = CleanerSettings(io_max_bytes_per_second=100_000.0)


def fill(log: Log, segments: int = 4, size: int = 100) -> None:
    for number in range(segments):
        append(log, [(b"k%d" % key, b"%d" % number * size) for key in range(10)])
        log.roll()


async def open_log(world: World, runner: ProcessRunner, settings: CleanerSettings) -> tuple[LogManager, Log]:
    manager = await world.start(COMPACT, runner=runner, cleaner_settings=settings)
    return manager, await manager.creator.get_or_create(ORDERS, TOPIC_ID, COMPACT)


def contents(log: Log) -> dict[str, bytes]:
    folder = Path(log.directory)
    return {path.name: path.read_bytes() for path in folder.glob("*.*") if path.suffix != ".deleted"}


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def started(runner: ProcessRunner) -> int:
    """Wait for the process that cleans the log and return it."""
    while (worker := runner._busy.get(ORDERS)) is None:
        await asyncio.sleep(0.01)
    return worker._process.pid


def test_process_runner_gives_the_same_result_as_inline(tmp_path: Path) -> None:
    async def scenario() -> None:
        results = []
        for name, runner in (("inline", None), ("process", ProcessRunner())):
            world = World(tmp_path / name)
            manager = await world.start(COMPACT, runner=runner)
            log = await manager.creator.get_or_create(ORDERS, TOPIC_ID, COMPACT)
            fill(log)
            assert await manager.cleaner.clean_due() == 1
            results.append((contents(log), stored(log), manager.cleaner.last_result))
            await manager.shutdown()
        assert results[0] == results[1]
        assert len(results[0][1]) == 10

    asyncio.run(scenario())


def test_idle_cleaner_process_exits(tmp_path: Path) -> None:
    async def scenario() -> None:
        runner = ProcessRunner()
        manager, log = await open_log(World(tmp_path), runner, CleanerSettings())
        assert await manager.cleaner.clean_due() == 0
        assert runner._idle == []
        fill(log)
        pids = []
        swap = manager.cleaner._swap

        async def noted(log: Log, group: CleanedGroup) -> None:
            pids.append(runner._busy[ORDERS]._process.pid)
            await swap(log, group)

        manager.cleaner._swap = noted  # type: ignore[method-assign]
        assert await manager.cleaner.clean_due() == 1
        assert pids
        assert not is_running(pids[0])
        await manager.shutdown()

    asyncio.run(scenario())


def test_killed_cleaner_process_loses_nothing(tmp_path: Path) -> None:
    async def scenario() -> None:
        runner = ProcessRunner()
        manager, log = await open_log(World(tmp_path), runner, SLOW)
        fill(log, size=1000)
        before = stored(log)
        cleaning = asyncio.ensure_future(manager.cleaner.clean_due())
        pid = await started(runner)
        await at_work(log)
        os.kill(pid, 9)
        assert await cleaning == 0
        assert not manager.cleaner.is_busy(ORDERS)
        assert stored(log) == before
        manager.cleaner.settings = CleanerSettings()
        assert await manager.cleaner.clean_due() == 1
        assert len(stored(log)) == 10
        await manager.shutdown()

    asyncio.run(scenario())


async def at_work(log: Log) -> None:
    """Wait until the process has begun to write."""
    async with asyncio.timeout(30):
        while not any(name.endswith(".cleaned") for name in names(log.directory)):
            await asyncio.sleep(0.01)


def test_pausing_a_log_stops_its_process(tmp_path: Path) -> None:
    async def scenario() -> None:
        runner = ProcessRunner()
        manager, log = await open_log(World(tmp_path), runner, SLOW)
        fill(log, size=1000)
        cleaning = asyncio.ensure_future(manager.cleaner.clean_due())
        pid = await started(runner)
        await at_work(log)
        began = time.monotonic()
        await manager.truncate_to(ORDERS, 15)
        assert not any(name.endswith(".cleaned") for name in names(log.directory))
        assert time.monotonic() - began < 5
        await cleaning
        assert not is_running(pid)
        log.high_watermark = log.log_end_offset
        assert len(stored(log)) == 10
        await manager.shutdown()

    asyncio.run(scenario())


def test_pausing_before_the_process_has_started_prevents_cleaning(tmp_path: Path) -> None:
    async def scenario() -> None:
        manager, log = await open_log(World(tmp_path), ProcessRunner(), SLOW)
        fill(log, size=1000)
        cleaning = asyncio.ensure_future(manager.cleaner.clean_due())
        while not manager.cleaner.is_busy(ORDERS):
            await asyncio.sleep(0)
        began = time.monotonic()
        await manager.cleaner.pause(ORDERS)
        assert await cleaning == 0
        assert time.monotonic() - began < 2
        assert len(stored(log)) == 40
        await manager.shutdown()

    asyncio.run(scenario())


def test_shutdown_does_not_wait_for_a_long_job(tmp_path: Path) -> None:
    async def scenario() -> None:
        world, runner = World(tmp_path), ProcessRunner()
        manager, log = await open_log(world, runner, SLOW)
        fill(log, size=1000)
        values = latest(stored(log))
        cleaning = asyncio.ensure_future(manager.cleaner.clean_due())
        pid = await started(runner)
        await manager.shutdown()
        await cleaning
        assert not is_running(pid)
        manager = await world.start(COMPACT)
        assert latest(stored(manager.table.current[ORDERS])) == values
        await manager.shutdown()

    asyncio.run(scenario())


def test_cancelling_a_job_kills_its_process(tmp_path: Path) -> None:
    async def scenario() -> None:
        runner = ProcessRunner()
        manager, log = await open_log(World(tmp_path), runner, SLOW)
        fill(log, size=1000)
        cleaning = asyncio.ensure_future(manager.cleaner.clean_due())
        pid = await started(runner)
        cleaning.cancel()
        with pytest.raises(asyncio.CancelledError):
            await cleaning
        assert not is_running(pid)
        assert not manager.cleaner.is_busy(ORDERS)
        await manager.shutdown()

    asyncio.run(scenario())


@pytest.mark.parametrize(
    "command",
    [
        ("/nonexistent/python",),
        (sys.executable, "-c", "import sys; sys.stdin.readline()"),
        (sys.executable, "-c", ""),
    ],
)
def test_failing_cleaner_process_is_retried_later(tmp_path: Path, command: tuple[str, ...]) -> None:
    async def scenario() -> None:
        world = World(tmp_path)
        manager, log = await open_log(world, ProcessRunner(command), CleanerSettings())
        fill(log)
        assert await manager.cleaner.clean_due() == 0
        assert manager.cleaner.uncleanable == set()
        assert world.failures == []
        manager.cleaner._runner = ProcessRunner()
        assert await manager.cleaner.clean_due() == 1
        await manager.shutdown()

    asyncio.run(scenario())


def test_damage_is_reported_by_the_cleaner_process(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        manager, log = await open_log(World(tmp_path), ProcessRunner(), CleanerSettings())
        fill(log)
        damage(log.segments.items[1].files.log_path)
        await manager.cleaner.clean_due()
        assert manager.cleaner.uncleanable == {ORDERS}
        await manager.shutdown()

    asyncio.run(scenario())
    assert "00000000000000000010.log at position 0: the checksum does not match" in caplog.text


def test_log_cleaner_threads_is_the_number_of_processes(tmp_path: Path) -> None:
    async def scenario() -> None:
        manager = await World(tmp_path).start(
            COMPACT, runner=ProcessRunner(), cleaner_settings=CleanerSettings(threads=2)
        )
        logs = [
            await manager.creator.get_or_create(TopicPartition("t", n), TOPIC_ID, COMPACT) for n in range(3)
        ]
        for log in logs:
            fill(log)
        assert await manager.cleaner.clean_due() == 3
        assert [len(stored(log)) for log in logs] == [10, 10, 10]
        await manager.shutdown()

    asyncio.run(scenario())


def test_cleaner_process_imports_few_modules() -> None:
    script = "import sys, moldau.storage.cleaner.process; print(*sorted(sys.modules))"
    output = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    loaded = set(output.split())
    assert not loaded & {"uvloop", "asyncio", "moldau.server", "moldau.network", "moldau.storage.log.log"}


def test_jobs_are_sent_over_the_pipe_unchanged() -> None:
    config = LogConfig(
        cleanup_policy=frozenset({"compact", "delete"}), min_cleanable_dirty_ratio=0.25, preallocate=True
    )
    job = CleanJob(
        TopicPartition("t", 1), "/d/t-1", config, (0, 5), 3, 9, 123,
        aborted=(AbortedTransaction(1, 2, 3, 4),),
        last_records=((7, LastRecord(None, 2)), (8, LastRecord(5, 1))),
    )  # fmt: skip
    assert CleanJob.from_json(job.to_json()) == job
    assert "\n" not in job.to_json()


def test_throttle_limits_the_rate_and_detects_orphaned_processes() -> None:
    clock, slept = ManualClock(), []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        clock.advance(round(seconds * 1000))

    throttle = Throttle(1_000_000.0, clock, sleep, lambda: False)
    began = clock.monotonic()
    for _ in range(100):
        throttle(50_000)
    assert 4.5 < clock.monotonic() - began < 5.1
    Throttle(float("inf"), clock, sleep, lambda: False)(10**9)
    with pytest.raises(SystemExit):
        Throttle(float("inf"), clock, sleep, lambda: True)(10**9)


def test_process_serves_jobs_until_end_of_input(tmp_path: Path) -> None:
    async def scenario() -> CleanJob:
        manager = await World(tmp_path).start(COMPACT)
        log = await manager.creator.get_or_create(ORDERS, TOPIC_ID, replace(COMPACT, segment_bytes=2000))
        fill(log, segments=3)
        await manager.shutdown()
        bases = tuple(segment.base_offset for segment in log.segments.items[:-1])
        return CleanJob(ORDERS, log.directory, log.config, bases, 0, 30, 1)

    job = asyncio.run(scenario()).to_json().encode() + b"\n"
    sink = io.BytesIO()
    serve(PosixDisk(), io.BytesIO(job + b"swapped\n" * 3), sink, lambda: False)
    answers = [json.loads(line) for line in sink.getvalue().splitlines()]
    assert [list(answer) for answer in answers] == [["group"]] * (len(answers) - 1) + [["result"]]
    assert answers[-1]["result"]["records_written"] == 10
    unanswered = io.BytesIO()
    serve(PosixDisk(), io.BytesIO(job), unanswered, lambda: False)
    assert len(unanswered.getvalue().splitlines()) == 1
