"""Rolling, flushing and retention of segments."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest

from moldau.base.errors import ErrorCode, KafkaError
from moldau.storage.log.log import Log
from tests.unit.storage.disk.flaky_disk import FlakyDisk
from tests.unit.storage.log.one_log import NOW, Folder, batch, fill, headers, records

WEEK = 604_800_000


def bases(log: Log) -> list[int]:
    return [segment.base_offset for segment in log.segments.items]


def test_full_segment_is_rolled(tmp_path: Path) -> None:
    size = len(batch(10, value=b"v" * 100))
    folder = Folder(tmp_path, segment_bytes=3 * size)
    log = folder.open()
    fill(log, 7, 10)
    assert bases(log) == [0, 30, 60]
    assert [segment.size for segment in log.segments.items] == [3 * size, 3 * size, size]
    assert log.segments.size == 7 * size
    assert folder.names(".log") == [f"{base:020d}.log" for base in (0, 30, 60)]
    assert folder.names(".snapshot") == [f"{base:020d}.snapshot" for base in (30, 60)]
    assert len(headers(log)) == 7


def test_segment_ms_counts_from_the_first_record_timestamp(tmp_path: Path) -> None:
    folder = Folder(tmp_path, segment_ms=1000)
    log = folder.open()
    log.append_as_leader(batch(timestamp=NOW), 0)
    folder.clock.advance(100_000)
    log.append_as_leader(batch(timestamp=NOW + 1000), 0)
    assert bases(log) == [0], "the wall clock does not matter"
    log.append_as_leader(batch(timestamp=NOW + 1001), 0)
    assert bases(log) == [0, 2]
    log.append_as_leader(batch(timestamp=NOW - 5000), 0)
    assert bases(log) == [0, 2]


def test_segment_is_rolled_by_max_compaction_lag_ms(tmp_path: Path) -> None:
    for policy, closed in (("delete", False), ("compact", True)):
        folder = Folder(tmp_path / policy, max_compaction_lag_ms=1000, cleanup_policy=frozenset({policy}))
        log = folder.open()
        log.append_as_leader(batch(timestamp=NOW), 0)
        log.append_as_leader(batch(timestamp=NOW + 1000), 0)
        assert bases(log) == [0]
        log.append_as_leader(batch(timestamp=NOW + 1001), 0)
        assert bases(log) == ([0, 2] if closed else [0])


def test_segment_without_timestamps_is_rolled_by_the_clock(tmp_path: Path) -> None:
    folder = Folder(tmp_path, segment_ms=1000)
    log = folder.open()
    log.append_as_leader(batch(timestamp=-1), 0)
    folder.clock.advance(1000)
    log.append_as_leader(batch(timestamp=-1), 0)
    assert bases(log) == [0]
    folder.clock.advance(1)
    log.append_as_leader(batch(timestamp=-1), 0)
    assert bases(log) == [0, 2]


def test_segment_age_is_known_after_a_restart(tmp_path: Path) -> None:
    folder = Folder(tmp_path, segment_ms=1000)
    log = folder.open()
    log.append_as_leader(batch(timestamp=NOW), 0)
    log.close()
    log = folder.open(clean_shutdown=True)
    log.append_as_leader(batch(timestamp=NOW + 1001), 0)
    assert bases(log) == [0, 1]


def must_roll(log: Log, now_ms: int) -> bool:
    """Return whether an empty append would roll the log."""
    return log.segments.must_roll(0, log.log_end_offset, now_ms, now_ms)


def test_segment_ms_rolls_only_a_segment_with_records(tmp_path: Path) -> None:
    folder = Folder(tmp_path, segment_ms=1000)
    log = folder.open()
    assert not must_roll(log, NOW + 99_999), "nothing to close"
    fill(log, 1)
    assert not must_roll(log, NOW + 1000)
    assert must_roll(log, NOW + 1001)
    log.roll()
    assert bases(log) == [0, 10]
    assert log.roll() is log.segments.items[-1], "an empty segment stays"
    assert bases(log) == [0, 10]


def test_segment_jitter_ms_shortens_segment_ms(tmp_path: Path) -> None:
    folder = Folder(tmp_path, segment_ms=100_000, segment_jitter_ms=50_000)
    rolled_at = set()
    for seed in range(5):
        log = Folder(tmp_path / str(seed), segment_ms=100_000, segment_jitter_ms=50_000).open(
            randomness=random.Random(seed)
        )
        fill(log, 1)
        time = next(time for time in range(0, 100_002, 1) if must_roll(log, NOW + time))
        assert 50_000 <= time <= 100_001
        rolled_at.add(time)
    assert len(rolled_at) > 1
    assert folder.open().segments.active.roll_jitter_ms == 0


def test_full_index_rolls_the_segment(tmp_path: Path) -> None:
    log = Folder(tmp_path, segment_index_bytes=80, index_interval_bytes=0).open()
    fill(log, 30, 1, step_ms=1)
    assert len(log.segments.items) > 2
    assert all(size <= 80 for segment in log.segments.items for size in segment.index_sizes())
    assert len(records(log)) == 30


def test_relative_offset_overflow_rolls_the_segment(tmp_path: Path) -> None:
    log = Folder(tmp_path).open()
    log.append_as_follower(batch(1, base_offset=0))
    log.append_as_follower(batch(1, base_offset=2**31 - 1))
    assert bases(log) == [0]
    log.append_as_follower(batch(1, base_offset=2**31))
    assert bases(log) == [0, 2**31]
    log.append_as_follower(batch(1, base_offset=10**12))
    assert bases(log) == [0, 2**31, 10**12]
    assert [record.offset for record in records(log)] == [0, 2**31 - 1, 2**31, 10**12]


def test_last_timestamp_is_added_to_the_time_index_on_roll(tmp_path: Path) -> None:
    log = Folder(tmp_path).open()
    log.append_as_leader(batch(5, timestamp=NOW + 77), 0)
    assert len(log.segments.items[0].time_index) == 0
    log.roll()
    assert log.segments.items[0].time_index.last() == (NOW + 77, 4)


def test_flush_messages_makes_a_flush_due(tmp_path: Path) -> None:
    log = Folder(tmp_path, flush_messages=25).open()
    fill(log, 2, 10)
    assert not log.flusher.is_due()
    fill(log, 1, 10)
    assert log.flusher.is_due()
    assert log.flusher.flush() == 30
    assert log.flusher.recovery_point == 30
    assert not log.flusher.is_due()


def test_flush_ms_makes_a_flush_due(tmp_path: Path) -> None:
    log = Folder(tmp_path, flush_ms=1000).open()
    assert not log.flusher.is_due(NOW + 5000), "there is nothing to flush"
    fill(log, 1)
    assert not log.flusher.is_due(NOW + 999)
    assert log.flusher.is_due(NOW + 1000)
    assert not log.flusher.is_due(), "an append does not trigger a flush by time"


def test_flush_moves_the_recovery_point(tmp_path: Path) -> None:
    disk = FlakyDisk()
    log = Folder(tmp_path, disk).open()
    fill(log, 3)
    log.roll()
    fill(log, 2)
    disk.syncs.clear()
    assert log.flusher.is_due(NOW)
    log.flusher.flush(30)
    names = {Path(path).name for path in disk.syncs}
    zero = "00000000000000000000"
    assert names == {
        f"{zero}.log",
        f"{zero}.index",
        f"{zero}.timeindex",
        "00000000000000000030.snapshot",
        "partition.metadata",
    }
    assert log.flusher.recovery_point == 30
    assert not log.flusher.is_due(NOW)
    disk.syncs.clear()
    log.flusher.flush()
    assert [Path(path).name for path in disk.syncs] == ["00000000000000000030.log"]
    assert log.flusher.recovery_point == 50


def test_roll_lowers_the_recovery_point(tmp_path: Path) -> None:
    """The batches are synced, the indexes are not: they must be rebuilt after a power cut."""
    log = Folder(tmp_path).open()
    fill(log, 3)
    log.flusher.flush()
    assert log.flusher.recovery_point == 30
    log.roll()
    assert log.flusher.recovery_point == 0
    assert log.flusher.is_due(NOW)
    assert log.flusher.flush() == 30
    assert not log.flusher.is_due(NOW)


def test_nothing_is_synced_for_a_log_that_was_only_opened(tmp_path: Path) -> None:
    disk = FlakyDisk()
    folder = Folder(tmp_path, disk)
    folder.open().close()
    assert [Path(path).name for path in disk.syncs] == ["partition.metadata"]
    log = folder.open(clean_shutdown=True)
    fill(log, 3)
    log.close()
    before = {name: (folder.path / name).read_bytes() for name in folder.names()}
    disk.syncs.clear()
    log = folder.open(clean_shutdown=True)
    assert len(records(log)) == 30
    log.close()
    assert disk.syncs == []
    assert {name: (folder.path / name).read_bytes() for name in folder.names()} == before
    log = folder.open(clean_shutdown=True)
    log.truncate_to(20)
    log.close()
    assert disk.syncs != []
    assert folder.open(clean_shutdown=True).log_end_offset == 20


def test_leader_epochs_are_on_disk_before_the_recovery_point_moves(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    log = folder.open()
    log.append_as_leader(batch(3), 7)
    log.flusher.flush()
    assert (folder.path / "leader-epoch-checkpoint").read_text() == "0\n1\n7 0\n"


def test_retention_ms_deletes_expired_segments(tmp_path: Path) -> None:
    folder = Folder(tmp_path, segment_bytes=2500, retention_ms=10_000)
    log = folder.open()
    fill(log, 10, 10, step_ms=1000)
    assert bases(log) == [0, 20, 40, 60, 80]
    assert log.delete_old_segments(NOW + 11_000) == []
    deleted = log.delete_old_segments(NOW + 13_001)
    assert [segment.base_offset for segment in deleted] == [0, 20]
    assert log.log_start_offset == 40
    assert len(folder.names(".deleted")) == 7, "two segments and the snapshot at 20"
    assert folder.names(".log")[0] == "00000000000000000040.log"
    assert records(log)[0].offset == 40
    folder.clock.advance(59_999)
    assert log.segments.remove_deleted_files() == 7
    folder.clock.advance(1)
    assert log.segments.remove_deleted_files() == 0
    assert folder.names(".deleted") == []


def test_active_segment_expires_after_a_roll(tmp_path: Path) -> None:
    log = Folder(tmp_path, retention_ms=1000).open()
    fill(log, 3)
    log.delete_old_segments(NOW + 10_000)
    assert bases(log) == [30]
    assert log.log_start_offset == log.log_end_offset == 30
    assert log.delete_old_segments(NOW + 10_000) == []


def test_nothing_above_the_high_watermark_expires(tmp_path: Path) -> None:
    log = Folder(tmp_path, segment_bytes=2500, retention_ms=1000).open()
    for _ in range(6):
        log.append_as_leader(batch(10, value=b"v" * 100), 0)
    log.high_watermark = 25
    log.delete_old_segments(NOW + WEEK)
    assert bases(log)[0] == 20


def test_retention_bytes_deletes_the_oldest_segments(tmp_path: Path) -> None:
    size = len(batch(10, value=b"v" * 100))
    log = Folder(tmp_path, segment_bytes=2 * size, retention_bytes=5 * size, retention_ms=-1).open()
    fill(log, 10)
    log.delete_old_segments(NOW + 10 * WEEK)
    assert log.segments.size == 6 * size, "never smaller than retention.bytes"
    assert log.log_start_offset == 40


def test_compacted_log_deletes_only_segments_before_the_log_start(tmp_path: Path) -> None:
    log = Folder(tmp_path, segment_bytes=2500, retention_ms=1, cleanup_policy=frozenset({"compact"})).open()
    fill(log, 6)
    assert log.delete_old_segments(NOW + WEEK) == []
    assert log.delete_records_before(45) == 45
    log.delete_old_segments(NOW + WEEK)
    assert bases(log)[0] == 40
    assert log.log_start_offset == 45


def test_records_without_a_timestamp_expire_by_the_file_time(tmp_path: Path) -> None:
    folder = Folder(tmp_path, retention_ms=1000)
    log = folder.open()
    log.append_as_leader(batch(3, timestamp=-1), 0)
    log.high_watermark = 3
    written = log.segments.items[0].files.modified_ms()
    assert log.delete_old_segments(written + 1000) == []
    assert len(log.delete_old_segments(written + 1001)) == 1


def test_delete_records_moves_the_log_start_offset(tmp_path: Path) -> None:
    folder = Folder(tmp_path, segment_bytes=2500)
    log = folder.open()
    fill(log, 10)
    assert log.delete_records_before(37) == 37
    assert log.delete_records_before(10) == 37, "the log start offset never decreases"
    with pytest.raises(KafkaError) as refusal:
        log.delete_records_before(101)
    assert refusal.value.code == ErrorCode.OFFSET_OUT_OF_RANGE
    with pytest.raises(KafkaError):
        log.reader.read(36, 100, upper_bound=100)
    assert headers(log)[0].base_offset == 30, "a batch is never split"
    assert log.leader_epochs.entries == ((0, 37),)
    log.close()
    assert folder.open(clean_shutdown=True, log_start_offset=37).log_start_offset == 37
    log = folder.open(clean_shutdown=True, log_start_offset=37)
    log.high_watermark = 100
    assert log.delete_records_before(-1) == 100
    log.delete_old_segments(NOW)
    assert log.log_start_offset == 100


def test_high_watermark_stays_within_the_log(tmp_path: Path) -> None:
    log = Folder(tmp_path).open(log_start_offset=5)
    assert log.high_watermark == 5
    fill(log, 1)
    log.high_watermark = 99
    assert log.high_watermark == 15
    log.high_watermark = 7
    assert log.high_watermark == 15


def test_log_directory_can_be_renamed(tmp_path: Path) -> None:
    folder = Folder(tmp_path, segment_bytes=2500)
    log = folder.open()
    fill(log, 5)
    target = tmp_path / "orders-0.0123-delete"
    log.rename_directory(str(target))
    assert log.directory == str(target)
    assert len(records(log)) == 50
    fill(log, 5)
    log.close()
    assert not folder.path.exists()
    folder.path = target
    assert len(records(folder.open(clean_shutdown=True))) == 100


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux reserves without growing the file")
def test_blocks_are_reserved_ahead_and_released(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    log = folder.open()
    path = folder.path / "00000000000000000000.log"
    while log.segments.size < 6_000_000:
        fill(log, 1, 10, value=b"v" * 10_000)
    assert path.stat().st_size == log.segments.size
    assert path.stat().st_blocks * 512 > log.segments.size + 8_000_000
    crashed = folder.copy(tmp_path / "crashed")
    assert crashed.open().segments.size == log.segments.size
    log.roll()
    assert path.stat().st_blocks * 512 < log.segments.size + 100_000
    assert path.stat().st_size == log.segments.size


def test_preallocate_gives_a_segment_its_full_size(tmp_path: Path) -> None:
    folder = Folder(tmp_path, preallocate=True, segment_bytes=3_000_000)
    log = folder.open()
    fill(log, 1)
    assert (folder.path / "00000000000000000000.log").stat().st_size == log.segments.size
    log.close()
    assert len(records(folder.open(clean_shutdown=True))) == 10


def test_empty_logs_keep_few_files_open(tmp_path: Path) -> None:
    from moldau.storage.disk.open_files import OpenFiles

    folder = Folder(tmp_path)
    files = OpenFiles(folder.disk, limit=10)
    logs = []
    for number in range(50):
        each = Folder(tmp_path / str(number))
        logs.append(each.open(files=files))
    assert len(files) <= 10
    for log in logs:
        fill(log, 2)
    assert len(files) <= 10
    assert all(len(records(log)) == 20 for log in logs)
