"""Small files are merged and old versions removed, while records arrive; nothing is lost or left over."""

from __future__ import annotations

from pathlib import Path

import pytest

from moldau.base.ids import TopicPartition
from tests.harness.sink_tasks import Partitions, SinkRun
from tests.harness.tables import DeltaTables, IcebergLake

P0 = TopicPartition("events", 0)


def commit_often(lake: IcebergLake | DeltaTables, log: Partitions, commits: int, **settings: str) -> None:
    """Commit two records at a time."""
    run = SinkRun(lake.connector(), lake.config() | settings, log, [P0]).start()
    for _ in range(commits):
        number = len(log.records.get(P0, ()))
        log.add({"id": number, "region": "ab"[number % 2]})
        log.add({"id": number + 1, "region": "ab"[(number + 1) % 2]})
        run.run()
    run.stop()


@pytest.mark.parametrize("partition_by", ["", "region"])
def test_iceberg_files_and_snapshots_are_bounded(tmp_path: Path, partition_by: str) -> None:
    lake, log = IcebergLake(tmp_path), Partitions()
    settings = {
        "iceberg.tables.default-partition-by": partition_by,
        "iceberg.control.commit.interval-ms": "100",
        "iceberg.maintenance.compact-min-files": "4",
        "iceberg.maintenance.max-snapshots": "5",
    }
    commit_often(lake, log, 20, **settings)
    table = lake.table()
    assert [row["id"] for row in lake.rows()] == list(range(40))
    tasks = list(table.scan().plan_files())
    assert len(tasks) <= 2 * 4
    assert len(table.metadata.snapshots) <= 7
    # Every file belongs to a snapshot that remains, and every snapshot that remains can be read.
    used = {task.file.file_path for each in table.snapshots() for task in files_of(table, each.snapshot_id)}
    assert {f"file://{path}" for path in lake.data_files()} == used
    for each in table.snapshots():
        assert table.scan(snapshot_id=each.snapshot_id).to_arrow().num_rows > 0
    # The snapshot of a merge keeps the offsets, so a new task adds nothing.
    log.committed.clear()
    SinkRun(lake.connector(), lake.config() | settings, log).start().run().stop()
    assert len(lake.rows()) == 40


def files_of(table, snapshot_id: int):  # type: ignore[no-untyped-def]
    return table.scan(snapshot_id=snapshot_id).plan_files()


def test_delta_files_are_merged(tmp_path: Path) -> None:
    lake, log = DeltaTables(tmp_path), Partitions()
    commit_often(lake, log, 20, **{"delta.maintenance.compact-min-files": "4"})
    assert [row["id"] for row in lake.rows()] == list(range(40))
    assert len(lake.table().file_uris()) <= 8
