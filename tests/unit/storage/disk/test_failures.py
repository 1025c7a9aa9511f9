from __future__ import annotations

import errno
from pathlib import Path

import pytest

from moldau.base.errors import ErrorCode, KafkaError
from moldau.storage.disk.disk import DiskFull, LogDirectoryFailed
from tests.unit.storage.disk.flaky_disk import FlakyDisk
from tests.unit.storage.log.one_log import NOW, Folder, batch, fill, records

SIZE = len(batch(10, value=b"v" * 100))


@pytest.mark.parametrize("room", [0, 1, 30, 61, 500, SIZE - 1])
def test_append_to_a_full_disk_leaves_the_log_unchanged(tmp_path: Path, room: int) -> None:
    disk = FlakyDisk()
    folder = Folder(tmp_path, disk)
    log = folder.open()
    fill(log, 3)
    disk.room = room
    for _ in range(2):
        with pytest.raises(DiskFull) as refusal:
            log.append_as_leader(
                batch(10, value=b"v" * 100, producer_id=1, producer_epoch=0, base_sequence=0), 9
            )
        assert refusal.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    assert log.log_end_offset == 30
    assert log.producer_state.producers == {}
    assert log.leader_epochs.latest == 0
    assert (folder.path / "00000000000000000000.log").stat().st_size == 3 * SIZE
    assert len(records(log)) == 30
    disk.room = None
    info = log.append_as_leader(
        batch(10, value=b"v" * 100, producer_id=1, producer_epoch=0, base_sequence=0), 9
    )
    assert info.first_offset == 30
    assert len(records(log)) == 40
    assert len(records(folder.open())) == 40


def test_roll_on_a_full_disk_leaves_the_log_unchanged(tmp_path: Path) -> None:
    disk = FlakyDisk()
    folder = Folder(tmp_path, disk, segment_bytes=3 * SIZE, index_interval_bytes=100)
    log = folder.open()
    fill(log, 3)
    disk.room = 0
    with pytest.raises(DiskFull):
        log.append_as_leader(batch(10, value=b"v" * 100), 0)
    assert len(log.segments.items) == 1
    assert len(records(log)) == 30
    disk.room = 40
    with pytest.raises(DiskFull):
        log.append_as_leader(batch(10, value=b"v" * 100), 0)
    disk.room = None
    fill(log, 4)
    assert len(log.segments.items) == 3
    assert [record.offset for record in records(log)] == list(range(70))
    log.close()
    assert len(records(folder.open(clean_shutdown=True))) == 70


def test_follower_append_on_a_full_disk_leaves_the_log_unchanged(tmp_path: Path) -> None:
    disk = FlakyDisk()
    log = Folder(tmp_path, disk).open()
    data = batch(10, base_offset=0) + batch(10, base_offset=10)
    disk.room = len(data) - 1
    with pytest.raises(DiskFull):
        log.append_as_follower(data)
    assert log.log_end_offset == 0
    disk.room = None
    log.append_as_follower(data)
    assert len(records(log)) == 20


@pytest.mark.parametrize("code", [errno.EIO, errno.EROFS])
def test_io_error_takes_the_directory_offline(tmp_path: Path, code: int) -> None:
    disk = FlakyDisk()
    folder = Folder(tmp_path, disk)
    log = folder.open()
    fill(log, 3)
    disk.broken = code
    with pytest.raises(LogDirectoryFailed) as failure:
        log.append_as_leader(batch(1), 0)
    assert failure.value.path == str(folder.path)
    assert failure.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    with pytest.raises(LogDirectoryFailed):
        log.flusher.flush()
    assert log.flusher.recovery_point == 0
    with pytest.raises(LogDirectoryFailed):
        log.roll()
    with pytest.raises(LogDirectoryFailed):
        log.close()


def test_read_error_takes_the_directory_offline(tmp_path: Path) -> None:
    disk = FlakyDisk()
    log = Folder(tmp_path, disk).open()
    fill(log, 3)
    disk.broken_reads = errno.EIO
    with pytest.raises(LogDirectoryFailed):
        log.reader.read(0, 100, upper_bound=30, blocking=True)
    with pytest.raises(LogDirectoryFailed):
        log.reader.offset_for_timestamp(NOW)


def test_missing_segment_file_is_a_directory_failure(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    log = folder.open()
    fill(log, 3)
    log.close()
    (folder.path / "00000000000000000000.log").unlink()
    with pytest.raises(LogDirectoryFailed):
        log.reader.read(0, 100, upper_bound=30, blocking=True)


def test_too_many_open_files_is_not_a_directory_failure(tmp_path: Path) -> None:
    disk = FlakyDisk()
    folder = Folder(tmp_path, disk)
    log = folder.open()
    fill(log, 3)
    log.segments.open_files.forget_directory(str(folder.path))
    disk.broken_opens = errno.EMFILE
    with pytest.raises(KafkaError) as failure:
        log.append_as_leader(batch(1), 0)
    assert failure.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    assert not isinstance(failure.value, LogDirectoryFailed)
    disk.broken_opens = None
    fill(log, 1)
    assert len(records(log)) == 40
