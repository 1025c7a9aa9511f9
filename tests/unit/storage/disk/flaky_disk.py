"""A real disk that fails on request: full, broken, or out of file descriptors."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from typing import Any

from moldau.storage.disk.disk import Buffer, File, PosixDisk


class FlakyDisk(PosixDisk):
    """`room` is the number of bytes left; `broken` the errno of every write and fsync."""

    def __init__(self) -> None:
        self.room: int | None = None
        self.broken: int | None = None
        self.broken_reads: int | None = None
        self.broken_opens: int | None = None
        self.cold = False
        self.syncs: list[str] = []

    def open(self, path: str, *, create: bool = False, read_only: bool = False) -> File:
        if self.broken_opens is not None:
            raise OSError(self.broken_opens, os.strerror(self.broken_opens), path)
        if create and not os.path.exists(path):
            self.fail_if_broken(path)
            if self.room == 0:
                raise OSError(errno.ENOSPC, "No space left on device", path)
        return _FlakyFile(self, super().open(path, create=create, read_only=read_only))

    def fail_if_broken(self, path: str) -> None:
        if self.broken is not None:
            raise OSError(self.broken, os.strerror(self.broken), path)


class _FlakyFile:
    def __init__(self, disk: FlakyDisk, file: File) -> None:
        self._disk = disk
        self._file = file

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def pwrite(self, buffers: Sequence[Buffer], offset: int) -> None:
        self._disk.fail_if_broken(self._file.path)
        data = b"".join(buffers)
        room = self._disk.room
        if room is not None and len(data) > room:
            self._file.pwrite((data[:room],), offset)
            self._disk.room = 0
            raise OSError(errno.ENOSPC, "No space left on device", self._file.path)
        self._file.pwrite((data,), offset)
        if room is not None:
            self._disk.room = room - len(data)

    def pread(self, size: int, offset: int) -> bytes | memoryview:
        if self._disk.broken_reads is not None:
            raise OSError(self._disk.broken_reads, os.strerror(self._disk.broken_reads), self._file.path)
        return self._file.pread(size, offset)

    def pread_nowait(self, size: int, offset: int) -> bytes | memoryview | None:
        return None if self._disk.cold else self._file.pread_nowait(size, offset)

    def map(self, offset: int, length: int, *, resident_only: bool = False) -> memoryview | None:
        return None if self._disk.cold else self._file.map(offset, length, resident_only=resident_only)

    def truncate(self, size: int) -> None:
        self._disk.fail_if_broken(self._file.path)
        self._file.truncate(size)

    def sync(self) -> None:
        self._disk.fail_if_broken(self._file.path)
        self._disk.syncs.append(self._file.path)
        self._file.sync()
