"""Delivery exactly once: killed tasks, tasks that write at the same time, and offsets that a user sets."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from moldau.base.ids import TopicPartition
from tests.harness.lake_task import KINDS, RECORDS, Lake
from tests.harness.sink_tasks import Partitions, SinkRun
from tests.harness.waiting import eventually

P0, P1 = TopicPartition("events", 0), TopicPartition("events", 1)


@pytest.fixture(params=sorted(KINDS))
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Lake:
    made: Callable[[Path], Lake] = KINDS[request.param]
    return made(tmp_path)


def run(lake: Lake, log: Partitions, *partitions: TopicPartition, **settings: str) -> SinkRun:
    return SinkRun(lake.connector(), lake.config() | settings, log, partitions or None).start()


def fill(log: Partitions, count: int, partition: int = 0) -> None:
    for _ in range(count):
        number = len(log.records.get(TopicPartition("events", partition), ()))
        log.add({"id": partition * 1_000_000 + number}, partition=partition)


def kill_after_commit(lake: Lake, command: list[str]) -> None:
    before = lake.count()
    process = subprocess.Popen(command, cwd=Path(__file__).parents[4])
    try:
        eventually(lambda: lake.count() > before or process.poll() is not None, timeout=120)
    finally:
        process.kill()
        process.wait()


def ids(lake: Lake) -> list[int]:
    return [row["id"] for row in lake.rows()]


def test_a_killed_process_continues_exactly_where_the_table_ends(lake: Lake) -> None:
    """No offsets but those in the table survive."""
    command = [sys.executable, "-m", "tests.harness.lake_task", lake.kind, str(lake.folder)]
    kill_after_commit(lake, command)
    assert subprocess.run(command, cwd=Path(__file__).parents[4], timeout=150).returncode == 0
    assert ids(lake) == list(range(RECORDS))


def test_two_tasks_write_one_table_at_the_same_time(lake: Lake) -> None:
    log = Partitions()
    for _ in range(5):
        fill(log, 100)
        fill(log, 100, partition=1)
        first, second = run(lake, log, P0), run(lake, log, P1)
        while not (
            log.committed.get(P0, 0) == len(log.records[P0])
            and log.committed.get(P1, 0) == len(log.records[P1])
        ):
            first.step()
            second.step()
    assert ids(lake) == [*range(500), *range(1_000_000, 1_000_500)]


def test_a_task_that_lost_its_partition_without_knowing_adds_nothing(lake: Lake) -> None:
    log = Partitions()
    fill(log, 50)
    zombie = run(lake, log)
    zombie.run()
    fill(log, 50)
    # The zombie has read records that it has not committed; the new owner commits them and more.
    lagging = lake.config() | {"name": "lake"}
    assert lagging
    zombie.task.put(log.records[P0][50:80])
    zombie._put[P0] = 80
    owner = run(lake, log)
    owner.run()
    fill(log, 10)
    zombie.positions[P0] = 80
    zombie.stopping = True
    zombie.commit()
    zombie.stopping = False
    assert ids(lake) == list(range(100))
    # It notices, reads the offsets again and continues.
    zombie.run_until(lambda: len(ids(lake)) == 110)
    owner.run_until(lambda: log.committed[P0] == 110)
    assert ids(lake) == list(range(110))


def test_several_tables_take_each_record_once(lake: Lake) -> None:
    log = Partitions()
    fill(log, 100)
    several = lake.two_tables()
    SinkRun(lake.connector(), several, log).start().run().stop()
    fill(log, 100)
    log.committed.clear()
    SinkRun(lake.connector(), several, log).start().run().stop()
    for table in ("first", "second"):
        assert [row["id"] for row in lake.rows(table)] == list(range(200))


def test_offsets_that_a_user_sets_are_stored_in_the_table(lake: Lake) -> None:
    log = Partitions()
    fill(log, 20)
    run(lake, log).run().stop()
    connector = lake.connector()
    assert connector.alter_offsets(lake.config(), {P0: 15})
    log.committed[P0] = 15
    run(lake, log).run().stop()
    assert ids(lake) == sorted([*range(20), *range(15, 20)])
    assert connector.alter_offsets(lake.config(), {P0: None})
    log.committed.clear()
    run(lake, log).run().stop()
    assert len(ids(lake)) == 45


def test_rows_wait_while_the_storage_is_away(lake: Lake) -> None:
    log = Partitions()
    fill(log, 30)
    prefix = "iceberg" if lake.kind == "iceberg" else "delta"
    settings = {f"{prefix}.control.commit.max-rows": "20"}
    task = SinkRun(lake.connector(), lake.config() | settings, log, batch=10).start()
    task.run()
    folder = lake.data_files()[0].parent
    away = folder.with_name("away")
    folder.rename(away)
    folder.write_text("no folder")
    fill(log, 60)
    # Rows are taken up to the bound, and refused after that.
    task.run_until(lambda: task.refused > 0)
    assert task.positions[P0] <= 60
    folder.unlink()
    away.rename(folder)
    task.run()
    assert ids(lake) == list(range(90))


def test_rows_that_were_refused_are_read_again_after_a_conflict(lake: Lake) -> None:
    """The worker repeats refused records, although the task reads from another offset by then."""
    log = Partitions()
    fill(log, 30)
    prefix = "iceberg" if lake.kind == "iceberg" else "delta"
    settings = {f"{prefix}.control.commit.max-rows": "20", f"{prefix}.control.commit.interval-ms": "100000"}
    zombie = SinkRun(lake.connector(), lake.config() | settings, log, batch=15).start()
    zombie.step()
    SinkRun(lake.connector(), lake.config(), log, batch=10).start().run().stop()
    fill(log, 30)
    zombie.run_until(lambda: len(ids(lake)) >= 40)
    zombie.stopping = True
    zombie.run()
    assert ids(lake) == list(range(60))


def test_tasks_create_the_table_at_the_same_time(lake: Lake) -> None:
    log = Partitions()
    partitions = [TopicPartition("events", number) for number in range(4)]
    for each in partitions:
        fill(log, 20, each.partition)
    runs = [run(lake, log, each) for each in partitions]
    with ThreadPoolExecutor(len(runs)) as pool:
        for each in pool.map(SinkRun.run, runs):
            each.stop()
    assert ids(lake) == sorted(each.partition * 1_000_000 + n for each in partitions for n in range(20))
