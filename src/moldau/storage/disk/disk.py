"""The disk as an argument: all code accesses files only through `Disk` and `File`.

`PosixDisk` is the real disk; the simulated and the failing disks of tests implement the same protocols.
Methods raise plain `OSError`; the owner of the files decides what it means (`storage_failure` turns it into
the right `KafkaError`).

A `File` closes its descriptor when the last reference to it is dropped. Code that no longer needs a file
drops it instead of closing it, so that a thread in the middle of a read never sees its descriptor closed or
reused.
"""

from __future__ import annotations

import errno
import fcntl
import os
import posixpath
import threading
from collections.abc import Sequence
from typing import Protocol

from moldau.base.errors import ErrorCode, KafkaError
from moldau.storage.disk.posix_file import Buffer, PosixFile

__all__ = [
    "Buffer",
    "Disk",
    "DiskFull",
    "File",
    "Lock",
    "LogDirectoryFailed",
    "PosixDisk",
    "SyncFailed",
    "WouldWait",
    "make_durable_dirs",
    "storage_failure",
    "sync_failure",
]

#: Modes of new files and folders; the umask of the process applies.
_FILE = 0o644
_PRIVATE_FILE = 0o600
_PRIVATE_FOLDER = 0o700
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
_PASSING = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})


class DiskFull(KafkaError):
    """The disk is full.

    Nothing is broken: a partial write is truncated, and later writes may succeed.
    """

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.KAFKA_STORAGE_ERROR, message)


class LogDirectoryFailed(KafkaError):
    """The disk of a log directory failed: the log manager takes the directory offline."""

    def __init__(self, path: str, message: str) -> None:
        super().__init__(ErrorCode.KAFKA_STORAGE_ERROR, message)
        self.path = path


class SyncFailed(LogDirectoryFailed):
    """A sync failed, so it is unknown which part of the file is on disk.

    The kernel has marked the pages as clean: a second sync would succeed without writing them. Unless all
    unsynced data is discarded, the directory is lost. `full`: the sync failed because the disk is full.
    """

    def __init__(self, path: str, message: str, *, full: bool) -> None:
        super().__init__(path, message)
        self.full = full


class WouldWait(Exception):
    """A non-blocking read would have to wait: repeat it in the pool."""


def storage_failure(error: OSError, path: str) -> KafkaError:
    """Return the `KafkaError` that an `OSError` under `path` stands for."""
    message = f"{path}: {error.strerror or error}"
    if error.errno in _FULL:
        return DiskFull(message)
    if error.errno in _PASSING:
        return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, message)
    return LogDirectoryFailed(path, message)


def sync_failure(error: OSError, path: str) -> KafkaError:
    """Return the `KafkaError` for an `OSError` of a sync."""
    if error.errno in _PASSING:
        return storage_failure(error, path)
    return SyncFailed(path, f"{path}: {error.strerror or error}", full=error.errno in _FULL)


class File(Protocol):
    @property
    def path(self) -> str:
        """The path by which the file was opened; a later rename does not change it."""
        ...

    def size(self) -> int: ...

    def pread(self, size: int, offset: int) -> bytes | memoryview:
        """Return `size` bytes, fewer only at the end of the file."""
        ...

    def pread_nowait(self, size: int, offset: int) -> bytes | memoryview | None:
        """Return `size` bytes without waiting for the disk; None if that is impossible or unknown."""
        ...

    def pwrite(self, buffers: Sequence[Buffer], offset: int) -> None:
        """Write everything or raise; after an error the file may contain a part of it."""
        ...

    def truncate(self, size: int) -> None: ...

    def allocate(self, offset: int, size: int) -> None:
        """Reserve blocks without changing the size; best effort."""
        ...

    def sync(self) -> None: ...

    def close(self) -> None: ...

    def map(self, offset: int, length: int, *, resident_only: bool = False) -> memoryview | None:
        """Map bytes without a copy; None if they cannot be mapped and must be read.

        With `resident_only` also None if touching them would wait for the disk. The mapping lives as long as
        the view. Never map bytes that may be truncated while the view lives: touching them kills the process.
        """
        ...


class Lock(Protocol):
    def release(self) -> None: ...


class Disk(Protocol):
    def open(self, path: str, *, create: bool = False, read_only: bool = False) -> File: ...

    def exists(self, path: str) -> bool: ...

    def is_dir(self, path: str) -> bool: ...

    def realpath(self, path: str) -> str: ...

    def listdir(self, path: str) -> list[str]:
        """Names in the directory, sorted."""
        ...

    def makedirs(self, path: str) -> None: ...

    def rename(self, source: str, target: str) -> None: ...

    def remove(self, path: str) -> None:
        """Remove a file if it exists."""
        ...

    def remove_tree(self, path: str) -> None: ...

    def size(self, path: str) -> int: ...

    def modified_ms(self, path: str) -> int: ...

    def set_modified(self, path: str, time_ms: int) -> None: ...

    def sync_dir(self, path: str) -> None: ...

    def free_bytes(self, path: str) -> int: ...

    def total_bytes(self, path: str) -> int: ...

    def read_bytes(self, path: str) -> bytes: ...

    def write_atomic(self, path: str, data: bytes, *, private: bool = False) -> None:
        """Replace the file atomically: after a crash it contains the old bytes or the new ones.

        A `private` file can be read by its owner only.
        """
        ...

    def make_private(self, folder: str) -> None:
        """Let only the owner of a folder read what is in it."""
        ...

    def lock(self, path: str) -> Lock:
        """Lock a file exclusively; `BlockingIOError` if another process holds the lock."""
        ...


def make_durable_dirs(disk: Disk, path: str) -> None:
    """Create directories that survive a power cut."""
    made: list[str] = []
    missing = path
    while not disk.exists(missing):
        made.append(missing)
        missing = _parent(missing)
    disk.makedirs(path)
    for each in made:
        disk.sync_dir(_parent(each))


def _parent(path: str) -> str:
    return posixpath.dirname(path) or "."


class PosixDisk:
    """Linux and macOS."""

    def open(self, path: str, *, create: bool = False, read_only: bool = False) -> File:
        flags = os.O_CLOEXEC | (os.O_RDONLY if read_only else os.O_RDWR) | (os.O_CREAT if create else 0)
        return PosixFile(os.open(path, flags, _FILE), path)

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def is_dir(self, path: str) -> bool:
        return os.path.isdir(path)

    def realpath(self, path: str) -> str:
        return os.path.realpath(path)

    def listdir(self, path: str) -> list[str]:
        return sorted(os.listdir(path))

    def makedirs(self, path: str) -> None:
        os.makedirs(path, exist_ok=True)

    def rename(self, source: str, target: str) -> None:
        os.replace(source, target)

    def remove(self, path: str) -> None:
        try:
            os.unlink(path)
        except FileNotFoundError:
            return

    def remove_tree(self, path: str) -> None:
        import shutil

        try:
            shutil.rmtree(path)
        except FileNotFoundError:
            return

    def size(self, path: str) -> int:
        return os.stat(path).st_size

    def modified_ms(self, path: str) -> int:
        return os.stat(path).st_mtime_ns // 1_000_000

    def set_modified(self, path: str, time_ms: int) -> None:
        os.utime(path, ns=(time_ms * 1_000_000, time_ms * 1_000_000))

    def sync_dir(self, path: str) -> None:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def free_bytes(self, path: str) -> int:
        facts = os.statvfs(path)
        return facts.f_bavail * facts.f_frsize

    def total_bytes(self, path: str) -> int:
        facts = os.statvfs(path)
        return facts.f_blocks * facts.f_frsize

    def read_bytes(self, path: str) -> bytes:
        with open(path, "rb") as file:
            return file.read()

    def write_atomic(self, path: str, data: bytes, *, private: bool = False) -> None:
        temporary = path + ".tmp"
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
        mode = _PRIVATE_FILE if private else _FILE
        try:
            with open(os.open(temporary, flags, mode), "wb") as file:
                if private:
                    # A temporary file that was left behind keeps its mode.
                    os.fchmod(file.fileno(), mode)
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        except OSError:
            self.remove(temporary)
            raise
        self.sync_dir(_parent(path))

    def make_private(self, folder: str) -> None:
        os.chmod(folder, _PRIVATE_FOLDER)

    def lock(self, path: str) -> Lock:
        return _PosixLock(path)


class _PosixLock:
    """A POSIX record lock, as Java's `FileChannel` takes it, so that it also excludes Apache Kafka.

    The kernel grants such a lock to a process, not to a descriptor; this class excludes two nodes in one
    process from each other.
    """

    _guard = threading.Lock()
    _held: set[str] = set()  # noqa: RUF012

    def __init__(self, path: str) -> None:
        self._path = os.path.realpath(path)
        with self._guard:
            if self._path in self._held:
                raise BlockingIOError(errno.EAGAIN, "already locked by this process", path)
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _FILE)
            try:
                fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                os.close(descriptor)
                if error.errno in (errno.EACCES, errno.EAGAIN):
                    raise BlockingIOError(errno.EAGAIN, "locked by another process", path) from error
                raise
            self._descriptor = descriptor
            self._held.add(self._path)

    def release(self) -> None:
        with self._guard:
            if self._path in self._held:
                self._held.discard(self._path)
                os.close(self._descriptor)
