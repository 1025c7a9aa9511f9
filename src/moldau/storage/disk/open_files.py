"""A bounded number of open files for all logs of a node.

Thousands of partitions have many thousands of files, more than a process may have open. Files are opened here
by path, and the least recently used are dropped; they close when the last reader drops them (see
`disk.File`). Called from the loop and from pool threads.
"""

from __future__ import annotations

import errno
import threading
from collections import OrderedDict, deque

from moldau.storage.disk.disk import Disk, File

DEFAULT_LIMIT = 768
_MAX_FLUSHES = 4096
_TOO_MANY = frozenset({errno.EMFILE, errno.ENFILE})


class FlushTimes:
    """Durations of log flushes. Written by pool threads; appending to a deque is atomic."""

    __slots__ = ("recent",)

    def __init__(self) -> None:
        #: In seconds, of flushes that metrics have not read yet; the oldest are dropped.
        self.recent: deque[float] = deque(maxlen=_MAX_FLUSHES)


class OpenFiles:
    __slots__ = ("_files", "_limit", "_lock", "disk", "flushes")

    def __init__(self, disk: Disk, limit: int = DEFAULT_LIMIT) -> None:
        self.disk = disk
        #: Of all logs that share these files.
        self.flushes = FlushTimes()
        self._limit = limit
        self._files: OrderedDict[str, File] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, path: str, *, create: bool = False) -> File:
        file = self._files.get(path)
        if file is None:
            return self._open(path, create)
        try:
            self._files.move_to_end(path)
        except KeyError:
            # Another thread dropped it between the two lines; this reference keeps it open.
            return file
        return file

    def forget(self, path: str) -> None:
        """Drop a file that is about to be renamed, removed or closed."""
        with self._lock:
            self._files.pop(path, None)

    def forget_directory(self, directory: str) -> None:
        prefix = directory + "/"
        with self._lock:
            # An atomic copy: `get` changes the order without the lock.
            for path in [path for path in list(self._files) if path.startswith(prefix)]:
                del self._files[path]

    def __len__(self) -> int:
        return len(self._files)

    def _open(self, path: str, create: bool) -> File:
        with self._lock:
            file = self._files.get(path)
            if file is not None:
                return file
            try:
                file = self.disk.open(path, create=create)
            except OSError as error:
                if error.errno not in _TOO_MANY or not self._files:
                    raise
                self._shrink(len(self._files) // 2)
                file = self.disk.open(path, create=create)
            self._files[path] = file
            self._shrink(self._limit)
            return file

    def _shrink(self, limit: int) -> None:
        while len(self._files) > limit:
            self._files.popitem(last=False)
