"""Exits of forked child processes as events of a selector loop.

A process that forks its children (the fork server of a Spark session, the launcher of node processes) waits
for requests and for the exit of a child at the same time. SIGCHLD makes `ChildExits` readable; `collect` then
returns the children that have exited. The process must be single-threaded and have one `ChildExits`.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
from collections.abc import Iterable


class ChildExits:
    """Readable, for `select` and `poll`, as soon as a child process has exited."""

    def __init__(self) -> None:
        self._readable, self._writable = socket.socketpair()
        for each in (self._readable, self._writable):
            each.setblocking(False)
        signal.set_wakeup_fd(self._writable.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)

    def fileno(self) -> int:
        return self._readable.fileno()

    def collect(self, children: Iterable[int]) -> list[tuple[int, int]]:
        """Return process id and wait status of each of these children that has exited."""
        with contextlib.suppress(BlockingIOError):
            self._readable.recv(4096)
        found = (os.waitpid(pid, os.WNOHANG) for pid in list(children))
        return [(pid, status) for pid, status in found if pid]

    def reset(self) -> None:
        """Undo everything in a child process, which is not a parent."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        self._readable.close()
        self._writable.close()
