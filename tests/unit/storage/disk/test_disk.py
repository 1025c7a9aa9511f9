from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from moldau.base.errors import ErrorCode, KafkaError
from moldau.storage.disk.disk import DiskFull, LogDirectoryFailed, PosixDisk, storage_failure
from moldau.storage.disk.open_files import OpenFiles
from tests.unit.storage.disk.flaky_disk import FlakyDisk


def test_written_bytes_are_read_by_every_read_function(tmp_path: Path) -> None:
    file = PosixDisk().open(str(tmp_path / "file"), create=True)
    data = os.urandom(300_000)
    file.pwrite((data[:1000], memoryview(data)[1000:], b""), 0)
    assert file.size() == len(data)
    assert file.pread(len(data) + 10, 0) == data
    assert bytes(file.pread(10, 299_995)) == data[-5:]
    nowait = file.pread_nowait(5000, 100)
    assert nowait is None or bytes(nowait) == data[100:5100]
    mapped = file.map(70_001, 200_000)
    assert mapped is not None
    assert bytes(mapped) == data[70_001:270_001]
    with pytest.raises(TypeError):
        mapped[0] = 0


def test_more_buffers_than_iov_max_are_written(tmp_path: Path) -> None:
    file = PosixDisk().open(str(tmp_path / "file"), create=True)
    pieces = [bytes((number % 256,)) * 3 for number in range(3000)]
    file.pwrite(pieces, 5)
    assert file.pread(20_000, 5) == b"".join(pieces)


def test_resident_pages_are_detected(tmp_path: Path) -> None:
    path = tmp_path / "file"
    file = PosixDisk().open(str(path), create=True)
    file.pwrite((b"x" * 1_000_000,), 0)
    mapped = file.map(4096, 500_000, resident_only=True)
    assert mapped is not None
    assert len(mapped) == 500_000


def test_mapping_outlives_its_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    file = PosixDisk().open(str(path), create=True)
    file.pwrite((b"x" * 10_000,), 0)
    mapped = file.map(0, 10_000)
    assert mapped is not None
    file.close()
    path.unlink()
    assert bytes(mapped[-3:]) == b"xxx"


def test_map_of_an_unmappable_range_is_none(tmp_path: Path) -> None:
    file = PosixDisk().open(str(tmp_path / "file"), create=True)
    assert file.map(0, 100) is None


def test_write_atomic_replaces_the_whole_file(tmp_path: Path) -> None:
    disk, path = PosixDisk(), str(tmp_path / "file")
    disk.write_atomic(path, b"a long first version")
    disk.write_atomic(path, b"second")
    assert disk.read_bytes(path) == b"second"
    assert disk.listdir(str(tmp_path)) == ["file"]


def test_only_the_owner_can_read_private_files_and_folders(tmp_path: Path) -> None:
    disk, path = PosixDisk(), tmp_path / "folder" / "file"
    disk.makedirs(str(path.parent))
    disk.make_private(str(path.parent))
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    leftover = path.with_name("file.tmp")
    leftover.touch(mode=0o644)
    disk.write_atomic(str(path), b"secret", private=True)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_lock_is_exclusive(tmp_path: Path) -> None:
    disk, path = PosixDisk(), str(tmp_path / ".lock")
    lock = disk.lock(path)
    with pytest.raises(BlockingIOError):
        disk.lock(path)
    child = os.fork()
    if child == 0:
        try:
            # The child holds no lock: record locks are not inherited.
            from moldau.storage.disk.disk import _PosixLock

            _PosixLock._held.clear()
            disk.lock(path)
            os._exit(1)
        except BlockingIOError:
            os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    lock.release()
    lock.release()
    disk.lock(path).release()


def test_removing_a_missing_file_is_not_an_error(tmp_path: Path) -> None:
    disk = PosixDisk()
    disk.remove(str(tmp_path / "nothing"))
    disk.remove_tree(str(tmp_path / "nothing"))


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (errno.ENOSPC, DiskFull),
        (errno.EDQUOT, DiskFull),
        (errno.EIO, LogDirectoryFailed),
        (errno.EMFILE, KafkaError),
    ],
)
def test_storage_failure_of_os_errors(code: int, kind: type[KafkaError]) -> None:
    failure = storage_failure(OSError(code, os.strerror(code)), "/data")
    assert type(failure) is kind
    assert failure.code == ErrorCode.KAFKA_STORAGE_ERROR
    assert "/data" in str(failure)


def test_open_files_are_bounded_and_dropped_oldest_first(tmp_path: Path) -> None:
    files = OpenFiles(PosixDisk(), limit=3)
    before = len(os.listdir("/proc/self/fd")) if os.path.exists("/proc/self/fd") else 0
    for number in range(10):
        files.get(str(tmp_path / f"{number}"), create=True).pwrite((b"%d" % number,), 0)
    assert len(files) == 3
    if before:
        assert len(os.listdir("/proc/self/fd")) - before <= 3
    assert files.get(str(tmp_path / "0")).pread(1, 0) == b"0"


def test_evicted_file_in_use_stays_open(tmp_path: Path) -> None:
    files = OpenFiles(PosixDisk(), limit=1)
    first = files.get(str(tmp_path / "a"), create=True)
    first.pwrite((b"a",), 0)
    files.get(str(tmp_path / "b"), create=True)
    assert first.pread(1, 0) == b"a"


def test_emfile_evicts_open_files_and_retries(tmp_path: Path) -> None:
    disk = FlakyDisk()
    files = OpenFiles(disk, limit=100)
    for number in range(10):
        files.get(str(tmp_path / f"{number}"), create=True)
    failures = 0

    class Limited(FlakyDisk):
        def open(self, path: str, *, create: bool = False, read_only: bool = False):  # type: ignore[no-untyped-def]
            nonlocal failures
            if len(files) > 5:
                failures += 1
                raise OSError(errno.EMFILE, "Too many open files", path)
            return super().open(path, create=create, read_only=read_only)

    files.disk = Limited()
    files.get(str(tmp_path / "more"), create=True)
    assert failures == 1
    assert len(files) == 6


def test_forgetting_a_folder_keeps_other_files_open(tmp_path: Path) -> None:
    files = OpenFiles(PosixDisk())
    for folder in ("a-1", "a-10"):
        (tmp_path / folder).mkdir()
        files.get(str(tmp_path / folder / "x.log"), create=True)
    files.forget_directory(str(tmp_path / "a-1"))
    assert len(files) == 1
