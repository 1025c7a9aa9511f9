"""Operations of a log that fail or are interrupted leave the previous state unchanged."""

from __future__ import annotations

import errno
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from moldau.base.errors import ErrorCode, KafkaError
from moldau.storage.disk.disk import DiskFull, File, LogDirectoryFailed, PosixDisk
from moldau.storage.disk.open_files import OpenFiles
from moldau.storage.segment.files import DELETED
from moldau.storage.segment.reader import SegmentReader
from moldau.storage.segment.segment import Segment
from tests.unit.storage.disk.flaky_disk import FlakyDisk
from tests.unit.storage.log.one_log import NOW, ORDERS, Folder, batch, fill, records

SIZE = len(batch(10, value=b"v" * 100))


class _Hooks(FlakyDisk):
    """A disk that calls a function before a file is opened, renamed or removed."""

    def __init__(self) -> None:
        super().__init__()
        self.synced_folders: list[str] = []
        self.before_open: Callable[[str, bool], None] = lambda path, create: None
        self.before_rename: Callable[[str], object] = lambda path: None
        self.before_remove: Callable[[str], object] = lambda path: None

    def open(self, path: str, *, create: bool = False, read_only: bool = False) -> File:
        self.before_open(path, create)
        return super().open(path, create=create, read_only=read_only)

    def rename(self, source: str, target: str) -> None:
        self.before_rename(source)
        super().rename(source, target)

    def remove(self, path: str) -> None:
        self.before_remove(path)
        super().remove(path)

    def sync_dir(self, path: str) -> None:
        self.synced_folders.append(path)
        super().sync_dir(path)


def _full(path: str) -> OSError:
    return OSError(errno.ENOSPC, "No space left on device", path)


def _idempotent(sequence: int) -> bytearray:
    return batch(10, producer_id=7, producer_epoch=0, base_sequence=sequence)


@pytest.mark.parametrize("kind", [".index", ".timeindex"])
@pytest.mark.parametrize("clean", [False, True])
def test_failed_segment_creation_leaves_no_segment(tmp_path: Path, kind: str, *, clean: bool) -> None:
    disk = _Hooks()
    folder = Folder(tmp_path, disk, segment_bytes=3 * SIZE)
    log = folder.open()
    fill(log, 2)

    def no_room(path: str, create: bool) -> None:
        if create and path.endswith(f"20{kind}"):
            raise _full(path)

    disk.before_open = no_room
    with pytest.raises(DiskFull):
        log.append_as_leader(batch(10, value=b"v" * 200), 0)
    # This batch is smaller and still fits into the segment.
    log.append_as_leader(batch(5), 0)
    disk.before_open = lambda path, create: None
    if clean:
        log.close()
    again = folder.open(clean_shutdown=clean)
    assert [record.offset for record in records(again)] == list(range(25))
    assert folder.names(".log") == ["00000000000000000000.log"]


def test_unreadable_index_does_not_undo_an_append(tmp_path: Path) -> None:
    disk = FlakyDisk()
    folder = Folder(tmp_path, disk, index_interval_bytes=0)
    log = folder.open()
    fill(log, 3)
    log.close()
    log = folder.open(clean_shutdown=True)
    assert not log.segments.must_roll(0, log.log_end_offset, NOW, NOW)
    disk.broken_reads = errno.EIO
    assert log.append_as_leader(batch(10), 0).first_offset == 30
    assert log.append_as_leader(batch(10), 0).first_offset == 40
    disk.broken_reads = None
    assert [record.offset for record in records(log)] == list(range(50))
    log.close()
    assert len(records(folder.open(clean_shutdown=True))) == 50


def test_append_after_a_damaged_first_batch(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    log = folder.open()
    fill(log, 300)
    log.close()
    path = folder.path / "00000000000000000000.log"
    data = bytearray(path.read_bytes())
    data[8:12] = b"\x7f\xff\xff\xff"
    path.write_bytes(data)
    log = folder.open(clean_shutdown=True)
    assert log.append_as_leader(batch(10), 0).first_offset == 3000


def test_append_fails_if_the_segment_age_cannot_be_read(tmp_path: Path) -> None:
    disk = FlakyDisk()
    folder = Folder(tmp_path, disk)
    log = folder.open()
    fill(log, 3)
    log.close()
    log = folder.open(clean_shutdown=True)
    disk.broken_reads = errno.EIO
    with pytest.raises(LogDirectoryFailed):
        log.append_as_leader(batch(10), 0)


def test_shutdown_without_a_producer_snapshot_is_not_clean(tmp_path: Path) -> None:
    disk = _Hooks()
    folder = Folder(tmp_path, disk)
    log = folder.open()
    log.append_as_leader(_idempotent(0), 0)
    log.flusher.flush()

    def no_room(path: str, create: bool) -> None:
        if create and path.endswith(".snapshot"):
            raise _full(path)

    disk.before_open = no_room
    with pytest.raises(DiskFull):
        log.close()
    disk.before_open = lambda path, create: None
    again = folder.open(recovery_point=log.flusher.recovery_point)
    assert again.append_as_leader(_idempotent(0), 0).duplicate


def test_damaged_snapshot_makes_recovery_read_the_batches(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    log = folder.open()
    log.append_as_leader(_idempotent(0), 0)
    log.close()
    (name,) = folder.names(".snapshot")
    (folder.path / name).write_bytes(b"")
    again = folder.open(clean_shutdown=True)
    assert again.append_as_leader(_idempotent(0), 0).duplicate


def test_failed_removal_of_a_deleted_file_fails_the_directory(tmp_path: Path) -> None:
    disk = _Hooks()
    folder = Folder(tmp_path, disk, segment_bytes=3 * SIZE, retention_bytes=SIZE, file_delete_delay_ms=0)
    log = folder.open()
    fill(log, 9)
    assert log.delete_old_segments(NOW)

    def refuse(path: str) -> None:
        raise OSError(errno.EROFS, "Read-only file system", path)

    disk.before_remove = refuse
    with pytest.raises(LogDirectoryFailed):
        log.segments.remove_deleted_files()
    disk.before_remove = lambda path: None
    assert log.segments.remove_deleted_files() == 0
    assert folder.names(DELETED) == []


def test_new_segment_is_synced_to_its_folder_before_the_recovery_point_passes_it(tmp_path: Path) -> None:
    disk = _Hooks()
    log = Folder(tmp_path, disk).open()
    fill(log, 3)
    log.flusher.flush()
    log.roll()
    log.flusher.flush()
    fill(log, 3)
    disk.synced_folders.clear()
    assert log.flusher.flush() == 60
    assert disk.synced_folders == [log.directory]
    fill(log, 3)
    log.flusher.flush()
    assert disk.synced_folders == [log.directory]


def test_clean_shutdown_syncs_recovered_files(tmp_path: Path) -> None:
    disk = FlakyDisk()
    folder = Folder(tmp_path, disk)
    log = folder.open()
    fill(log, 30)
    log.flusher.flush()
    crashed = folder.open(recovery_point=log.flusher.recovery_point)
    disk.syncs.clear()
    crashed.close()
    assert str(folder.path / "00000000000000000000.index") in disk.syncs
    assert str(folder.path / "00000000000000000000.timeindex") in disk.syncs


def test_reader_during_a_rename_leaves_no_stale_open_file(tmp_path: Path) -> None:
    disk = _Hooks()
    files = OpenFiles(disk)
    folder = Folder(tmp_path, disk)
    log = folder.open(files=files)
    fill(log, 1)
    log.roll()
    disk.before_rename = lambda path: files.get(path)
    old = log.segments.items[0]
    path = old.files.log_path
    old.files.change_suffix(DELETED)
    (tmp_path / "new").write_bytes(b"new")
    PosixDisk().rename(str(tmp_path / "new"), path)
    assert bytes(files.get(path).pread(10, 0)) == b"new"


def test_reader_before_segment_creation_leaves_no_stale_open_file(tmp_path: Path) -> None:
    disk = _Hooks()
    files = OpenFiles(disk)
    folder = Folder(tmp_path, disk)
    log = folder.open(files=files)
    fill(log, 1)
    disk.before_remove = lambda path: path.endswith(".log") and files.get(path)
    segment = Segment.create(files, log.directory, 0, folder.config, now_ms=NOW)
    segment.append_batch(batch(10), 9, NOW)
    assert Path(segment.files.log_path).stat().st_size == len(batch(10))


def test_read_of_a_segment_deleted_meanwhile_is_out_of_range(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = Folder(tmp_path, segment_bytes=3 * SIZE, retention_bytes=SIZE).open()
    fill(log, 9)
    read = SegmentReader.read

    def overtaken(self: SegmentReader, *args: Any, **options: Any) -> Any:
        log.delete_old_segments(NOW)
        return read(self, *args, **options)

    monkeypatch.setattr(SegmentReader, "read", overtaken)
    with pytest.raises(KafkaError) as refusal:
        log.reader.read(5, 1000, upper_bound=90, blocking=True)
    assert refusal.value.code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_full_truncation_on_a_full_disk_changes_nothing(tmp_path: Path) -> None:
    disk = _Hooks()
    folder = Folder(tmp_path, disk, segment_bytes=3 * SIZE, file_delete_delay_ms=0)
    log = folder.open()
    fill(log, 6)

    def no_room(path: str, create: bool) -> None:
        if create and path.endswith("500.index"):
            raise _full(path)

    disk.before_open = no_room
    with pytest.raises(DiskFull):
        log.truncate_fully_and_start_at(500)
    disk.before_open = lambda path, create: None
    fill(log, 1)
    log.segments.remove_deleted_files()
    assert [record.offset for record in records(log)] == list(range(70))
    assert [record.offset for record in records(folder.open())] == list(range(70))


def test_close_waits_for_a_flush_in_progress(tmp_path: Path) -> None:
    log = Folder(tmp_path).open()
    fill(log, 3)
    with log.flusher.lock:
        closing = threading.Thread(target=log.close)
        closing.start()
        closing.join(0.05)
        assert closing.is_alive()
    closing.join()
    assert log.flusher.recovery_point == 30


def test_interrupted_truncation_leaves_no_gap(tmp_path: Path) -> None:
    disk = _Hooks()
    folder = Folder(tmp_path, disk, segment_bytes=3 * SIZE)
    log = folder.open()
    fill(log, 12)
    renamed: list[str] = []
    disk.before_rename = lambda path: renamed.append(path) if path.endswith(".log") else None
    log.truncate_to(15)
    assert [path[-6:-4] for path in renamed] == ["90", "60", "30"]
    assert log.topic_partition == ORDERS
