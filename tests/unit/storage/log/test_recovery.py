"""Opening a log after a crash, a power cut, an interrupted compaction, or a killed Apache Kafka."""

from __future__ import annotations

import logging
import os
import struct
from pathlib import Path

import pytest

from moldau.storage.disk.open_files import OpenFiles
from moldau.storage.log.log import Log
from moldau.storage.segment.segment import Segment
from tests.unit.storage.disk.flaky_disk import FlakyDisk
from tests.unit.storage.log.one_log import NOW, Folder, batch, fill, headers, records

ZERO = "00000000000000000000"


def filled(parent: Path, batches: int = 20, **config: int) -> Folder:
    config = {"segment_bytes": 5000, "index_interval_bytes": 500, **config}
    folder = Folder(parent, **config)
    log = folder.open()
    fill(log, batches, step_ms=10)
    return folder


def check_indexes(folder: Folder, log: Log) -> None:
    """Check every entry of every index against the log."""
    for segment in log.segments.items:
        by_position = {item.position: item.header for item in segment.batches()}
        stem = str(folder.path / f"{segment.base_offset:020d}")
        for relative, position in struct.iter_unpack(">iI", Path(f"{stem}.index").read_bytes()):
            assert by_position[position].last_offset == segment.base_offset + relative
        by_last_offset = {header.last_offset: header for header in by_position.values()}
        for timestamp, relative in struct.iter_unpack(">qi", Path(f"{stem}.timeindex").read_bytes()):
            assert by_last_offset[segment.base_offset + relative].max_timestamp == timestamp


def test_records_survive_a_crash(tmp_path: Path) -> None:
    folder = filled(tmp_path)
    log = folder.open()
    assert [record.offset for record in records(log)] == list(range(200))
    assert log.log_end_offset == 200
    assert log.flusher.recovery_point == 0
    check_indexes(folder, log)


@pytest.mark.parametrize("cut", [1, 60, 61, 700, 1201, 1202, 3000])
def test_torn_batch_at_the_end_is_truncated(tmp_path: Path, cut: int) -> None:
    folder = filled(tmp_path)
    last = folder.path / folder.names(".log")[-1]
    size = last.stat().st_size
    os.truncate(last, max(0, size - cut))
    log = folder.open()
    assert [header.base_offset for header in headers(log)] == list(range(0, log.log_end_offset, 10))
    lost = 200 - log.log_end_offset
    assert lost == min(-(-cut // 1201), -(-size // 1201)) * 10
    fill(log, 1)
    assert len(records(log)) == log.log_end_offset
    check_indexes(folder, folder.open())


def test_garbage_after_the_last_batch_is_truncated(tmp_path: Path) -> None:
    folder = filled(tmp_path)
    for garbage in (b"\0" * 5000, os.urandom(3000), bytes(batch(3))):
        with open(folder.path / folder.names(".log")[-1], "ab") as file:
            file.write(garbage)
        log = folder.open()
        assert log.log_end_offset == 200
        assert len(records(log)) == 200


def test_segments_after_damage_are_removed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = filled(tmp_path)
    with open(folder.path / folder.names(".log")[1], "r+b") as file:
        file.seek(1201 + 100)
        file.write(b"\xff")
    log = folder.open()
    assert log.log_end_offset == 50
    assert len(log.segments.items) == 2
    assert "00000000000000000040.log at position 1201" in caplog.text
    assert folder.names(".log") == [f"{ZERO}.log", "00000000000000000040.log"]
    assert folder.names(".index") == [f"{ZERO}.index", "00000000000000000040.index"]


def test_recovery_starts_at_the_recovery_point(tmp_path: Path) -> None:
    folder = filled(tmp_path)
    with open(folder.path / f"{ZERO}.log", "r+b") as file:
        file.seek(100)
        file.write(b"\xff")
    log = folder.open(recovery_point=120)
    assert log.log_end_offset == 200, "damage before the recovery point is not looked for"
    assert log.flusher.recovery_point == 120


def test_recovery_point_after_the_log_end_is_lowered(tmp_path: Path) -> None:
    log = filled(tmp_path).open(recovery_point=10_000)
    assert log.flusher.recovery_point == log.segments.items[-1].base_offset == 160
    assert log.flusher.flush() == 200


def test_clean_shutdown_needs_no_recovery(tmp_path: Path) -> None:
    folder = filled(tmp_path)
    folder.open().close()
    with open(folder.path / f"{ZERO}.log", "r+b") as file:
        file.seek(100)
        file.write(b"\xff")
    log = folder.open(clean_shutdown=True)
    assert log.log_end_offset == log.flusher.recovery_point == 200
    log.close()


def test_damaged_tail_after_a_clean_shutdown_is_recovered(tmp_path: Path) -> None:
    folder = filled(tmp_path)
    folder.open().close()
    last = folder.path / folder.names(".log")[-1]
    os.truncate(last, last.stat().st_size - 5)
    log = folder.open(clean_shutdown=True)
    assert log.log_end_offset == 190
    assert len(records(log)) == 190


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("kind", ["index", "timeindex"])
def test_lost_indexes_are_rebuilt(tmp_path: Path, clean: bool, kind: str) -> None:
    folder = filled(tmp_path)
    folder.open().close()
    before = {name: (folder.path / name).read_bytes() for name in folder.names("index")}
    for name in folder.names(f".{kind}"):
        (folder.path / name).unlink()
    log = folder.open(clean_shutdown=clean, recovery_point=200)
    assert log.log_end_offset == 200
    assert len(records(log)) == 200
    log.close()
    assert {name: (folder.path / name).read_bytes() for name in folder.names("index")} == before


def test_indexes_of_a_killed_apache_kafka_are_rebuilt(tmp_path: Path) -> None:
    folder = filled(tmp_path)
    folder.open().close()
    last = folder.names(".log")[-1].removesuffix(".log")
    for kind, size in (("index", 10_485_760), ("timeindex", 10_485_756)):
        os.truncate(folder.path / f"{last}.{kind}", size)
    crashed = folder.copy(tmp_path / "crashed")
    for other, clean in ((folder, True), (crashed, False)):
        log = other.open(clean_shutdown=clean)
        assert log.log_end_offset == 200
        fill(log, 1)
        log.close()
        assert (other.path / f"{last}.index").stat().st_size < 1000
        assert (other.path / f"{last}.timeindex").stat().st_size < 1000


def test_invalid_indexes_after_a_crash_are_rebuilt(tmp_path: Path) -> None:
    folder = filled(tmp_path)
    for name in folder.names("index"):
        (folder.path / name).write_bytes(os.urandom(333))
    log = folder.open()
    assert len(records(log)) == 200
    check_indexes(folder, log)


def test_producer_state_is_recovered_after_a_crash(tmp_path: Path) -> None:
    folder = Folder(tmp_path, segment_bytes=5000)
    log = folder.open()
    for number in range(20):
        data = batch(
            10, value=b"v" * 100, producer_id=number % 2, producer_epoch=0, base_sequence=number // 2 * 10
        )
        log.append_as_leader(data, 0)
    expected = {item.producer_id: item for item in log.producer_state.to_snapshot()}
    crashed = folder.copy(tmp_path / "a")
    without = folder.copy(tmp_path / "b")
    for name in without.names(".snapshot"):
        (without.path / name).write_bytes(b"")
    log.close()
    for other, clean in ((folder, True), (crashed, False), (without, False)):
        log = other.open(clean_shutdown=clean)
        assert {item.producer_id: item for item in log.producer_state.to_snapshot()} == expected
        again = log.append_as_leader(batch(10, producer_id=1, producer_epoch=0, base_sequence=90), 0)
        assert again.duplicate
        assert again.first_offset == 190


def test_producer_snapshots_exist_for_segments_and_the_log_end(tmp_path: Path) -> None:
    folder = filled(tmp_path)
    log = folder.open()
    bases = [segment.base_offset for segment in log.segments.items]
    log.close()
    assert folder.names(".snapshot") == [f"{base:020d}.snapshot" for base in [*bases[1:], 200]]
    log = folder.open(clean_shutdown=True)
    fill(log, 1)
    log.close()
    log = folder.open(clean_shutdown=True)
    names = [f"{segment.base_offset:020d}.snapshot" for segment in log.segments.items[1:]]
    assert folder.names(".snapshot") == [*names, "00000000000000000210.snapshot"]


def test_leader_epochs_are_rebuilt_from_the_batches(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    log = folder.open()
    for epoch in (1, 1, 5):
        log.append_as_leader(batch(10), epoch)
    assert not (folder.path / "leader-epoch-checkpoint").exists(), "written with the next flush"
    log = folder.open()
    assert log.leader_epochs.entries == ((1, 0), (5, 20))


def test_epochs_after_the_log_end_are_removed_on_open(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    log = folder.open()
    for epoch in (1, 1, 5):
        log.append_as_leader(batch(10), epoch)
    log.close()
    os.truncate(folder.path / f"{ZERO}.log", 2 * len(batch(10)))
    assert folder.open().leader_epochs.entries == ((1, 0),)


def test_log_that_ends_before_its_log_start_offset_restarts_there(tmp_path: Path) -> None:
    folder = filled(tmp_path)
    log = folder.open(log_start_offset=1000)
    assert (log.log_start_offset, log.log_end_offset) == (1000, 1000)
    assert folder.names(".log") == ["00000000000000001000.log"]
    fill(log, 1)
    assert records(log)[0].offset == 1000


def test_temporary_files_are_removed_on_open(tmp_path: Path) -> None:
    folder = filled(tmp_path)
    later = "00000000000000009999"
    unfinished = [
        f"{ZERO}.log.deleted",
        f"{ZERO}.snapshot.deleted",
        f"{ZERO}.log.cleaned",
        f"{ZERO}.log.truncated",
    ]
    for name in [*unfinished, f"{later}.index", f"{later}.timeindex", f"{later}.txnindex"]:
        (folder.path / name).write_bytes(b"left over")
    (folder.path / "00000000000000000001-0000000001.checkpoint.deleted").write_bytes(b"not ours")
    log = folder.open()
    assert len(records(log)) == 200
    assert [name for name in folder.names() if "deleted" in name or "cleaned" in name or "9999" in name] == [
        "00000000000000000001-0000000001.checkpoint.deleted"
    ]


def compacted(folder: Folder, suffix: str) -> list[Segment]:
    """Write the first two segments as one without every second batch."""
    log = folder.open()
    old = list(log.segments.items[:2])
    cleaned = Segment.create(
        OpenFiles(folder.disk), str(folder.path), 0, folder.config, now_ms=NOW, suffix=suffix
    )
    kept = [item for segment in old for item in segment.batches()][::2]
    for item in kept:
        cleaned.append(item.data, [item.header])
    cleaned.finish()
    cleaned.flush()
    return old


def test_cleaned_segments_replace_the_originals(tmp_path: Path) -> None:
    folder = filled(tmp_path)
    compacted(folder, ".cleaned")
    log = folder.open()
    # Opening the log removes unfinished files of the cleaner.
    assert folder.names(".cleaned") == []
    compacted(folder, ".cleaned")
    new = log.segments.replace([0], list(log.segments.items[:2]))
    assert [segment.base_offset for segment in new] == [0]
    assert [segment.base_offset for segment in log.segments.items] == [0, 80, 120, 160]
    assert [header.base_offset for header in headers(log)][:6] == [0, 20, 40, 60, 80, 90]
    assert "00000000000000000040.snapshot.deleted" in folder.names()
    assert folder.names(".cleaned") == folder.names(".swap") == []
    folder.clock.advance(60_000)
    log.segments.remove_deleted_files()
    log.close()
    log = folder.open(clean_shutdown=True)
    assert [header.base_offset for header in headers(log)][:6] == [0, 20, 40, 60, 80, 90]


def test_interrupted_swap_is_completed_on_open(tmp_path: Path) -> None:
    folder = filled(tmp_path)
    compacted(folder, ".swap")
    (folder.path / f"{ZERO}.log").rename(folder.path / f"{ZERO}.log.deleted")
    log = folder.open(recovery_point=200)
    assert [segment.base_offset for segment in log.segments.items] == [0, 80, 120, 160]
    assert [header.base_offset for header in headers(log)][:6] == [0, 20, 40, 60, 80, 90]
    assert log.log_end_offset == 200


def test_swap_segments_beside_cleaned_files_are_discarded(tmp_path: Path) -> None:
    folder = filled(tmp_path)
    compacted(folder, ".swap")
    (folder.path / f"{ZERO}.timeindex.cleaned").write_bytes(b"")
    log = folder.open(recovery_point=200)
    assert len(records(log)) == 200
    assert folder.names(".swap") == []


def test_log_directory_failure_while_opening_a_log(tmp_path: Path) -> None:
    from moldau.storage.disk.disk import LogDirectoryFailed

    filled(tmp_path)
    disk = FlakyDisk()
    disk.broken_reads = 5
    with pytest.raises(LogDirectoryFailed):
        Folder(tmp_path, disk).open()


def test_opening_after_a_clean_shutdown_logs_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = filled(tmp_path)
    folder.open().close()
    with caplog.at_level(logging.INFO):
        folder.open(clean_shutdown=True)
    assert caplog.text == ""
