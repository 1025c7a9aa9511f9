"""An open file of a real disk: positioned reads and writes, and whether a read would wait for the disk.

`RWF_NOWAIT` tells that for copies and `mincore` for mappings. If neither is available (tmpfs has no
`RWF_NOWAIT`, macOS has none at all), the answer is None and the caller reads in the pool.
"""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
from collections.abc import Sequence
from typing import TypeAlias

Buffer: TypeAlias = bytes | bytearray | memoryview

_GRANULARITY = mmap.ALLOCATIONGRANULARITY
_PAGE = mmap.PAGESIZE
_MAX_BUFFERS = 1024
_NOWAIT: int | None = getattr(os, "RWF_NOWAIT", None)
_WOULD_WAIT = frozenset({errno.EAGAIN, errno.EOPNOTSUPP, errno.EINVAL})
_libc = ctypes.CDLL(None, use_errno=True)
_fallocate = getattr(_libc, "fallocate", None)
_KEEP_SIZE = 1
#: `mincore` sets the lowest bit for a page that is in memory.
_RESIDENT = bytes(range(1, 256, 2))
if _fallocate is not None:
    _fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]
_mincore = getattr(_libc, "mincore", None)
if _mincore is not None:
    _mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p]
    _mincore.restype = ctypes.c_int


class PosixFile:
    __slots__ = ("_descriptor", "path")

    def __init__(self, descriptor: int, path: str) -> None:
        self._descriptor = descriptor
        self.path = path

    def __del__(self) -> None:
        self.close()

    def size(self) -> int:
        return os.fstat(self._descriptor).st_size

    def pread(self, size: int, offset: int) -> bytes | memoryview:
        data = os.pread(self._descriptor, size, offset)
        if len(data) == size or not data:
            return data
        parts = [data]
        got = len(data)
        while got < size and (data := os.pread(self._descriptor, size - got, offset + got)):
            parts.append(data)
            got += len(data)
        return b"".join(parts)

    def pread_nowait(self, size: int, offset: int) -> bytes | memoryview | None:
        if _NOWAIT is None:
            return None
        buffer = bytearray(size)
        try:
            got = os.preadv(self._descriptor, [buffer], offset, _NOWAIT)
        except OSError as error:
            if error.errno in _WOULD_WAIT:
                return None
            raise
        return memoryview(buffer) if got == size else None

    def pwrite(self, buffers: Sequence[Buffer], offset: int) -> None:
        if len(buffers) == 1:
            self._write_all(memoryview(buffers[0]), offset)
            return
        for first in range(0, len(buffers), _MAX_BUFFERS):
            offset = self._write_vector(buffers[first : first + _MAX_BUFFERS], offset)

    def _write_all(self, view: memoryview, offset: int) -> None:
        written = os.pwrite(self._descriptor, view, offset)
        while written < len(view):
            written += os.pwrite(self._descriptor, view[written:], offset + written)

    def _write_vector(self, buffers: Sequence[Buffer], offset: int) -> int:
        """Return the position after the written bytes."""
        written = os.pwritev(self._descriptor, buffers, offset)
        for buffer in buffers:
            length = len(buffer)
            if written < length:
                self._write_all(memoryview(buffer)[written:], offset + written)
            written = max(0, written - length)
            offset += length
        return offset

    def truncate(self, size: int) -> None:
        os.ftruncate(self._descriptor, size)

    def allocate(self, offset: int, size: int) -> None:
        # Not `os.posix_fallocate`: that would change the size of the file.
        if _fallocate is not None:
            _fallocate(self._descriptor, _KEEP_SIZE, offset, size)

    def sync(self) -> None:
        os.fsync(self._descriptor)

    def close(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def map(self, offset: int, length: int, *, resident_only: bool = False) -> memoryview | None:
        start = offset - offset % _GRANULARITY
        lead = offset - start
        try:
            # Private and writable, because ctypes gives the address of writable buffers only.
            mapping = mmap.mmap(
                self._descriptor,
                length + lead,
                mmap.MAP_PRIVATE,
                mmap.PROT_READ | mmap.PROT_WRITE,
                offset=start,
            )
        except (OSError, ValueError):
            return None
        if resident_only and not _resident(mapping):
            return None
        return memoryview(mapping).toreadonly()[lead:]


def _resident(mapping: mmap.mmap) -> bool:
    if _mincore is None:
        return False
    pages = (len(mapping) + _PAGE - 1) // _PAGE
    answer = ctypes.create_string_buffer(pages)
    address = ctypes.addressof(ctypes.c_char.from_buffer(mapping))
    if _mincore(address, len(mapping), answer) != 0:
        return False
    return not answer.raw.translate(None, _RESIDENT)
