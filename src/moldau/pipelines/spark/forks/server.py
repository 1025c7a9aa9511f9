"""The fork server: imports what workers need, then forks itself for every client that asks.

    python -m moldau.pipelines.spark.forks.server SOCKET

Its standard input is the lifeline of the driver: when that is closed, the driver is gone. Then there are no
more forks, and the server stays for as long as some of those it has made: their clients may still be killed.
The server has a single thread, and imports nothing that starts others, which would be missing in a fork.
(Arrow's allocator has one of its own and knows about forks.)
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import resource
import selectors
import signal
import socket
import sys
import warnings
from collections.abc import Iterator
from typing import Any

from moldau.pipelines.spark.forks.client import ACCEPTED
from moldau.pipelines.spark.forks.requests import Request, become, close, receive

#: What the processes of a session import, as far as it is worth it. A module that is run as a program is not
#: among them, only what it imports.
PRELOADED = (
    "numpy",
    "pyarrow",
    "pyspark.worker",
    "pyspark.sql.worker.lookup_data_sources",
    "pyspark.sql.worker.create_data_source",
    "pyspark.sql.worker.plan_data_source_read",
    "pyspark.sql.worker.write_into_data_source",
    "pyspark.sql.worker.commit_data_source_write",
    "pyspark.sql.datasource_internal",
    "pyspark.sql.conversion",
    "moldau.pipelines.data_source",
    "moldau.pipelines.source.batch_reader",
    "moldau.pipelines.source.stream_reader",
    "moldau.pipelines.sink.writers",
    "moldau.pipelines.arrow.reading",
)
_REFUSED = b"-"
#: A client that says nothing is not waited for.
_PATIENCE_SECONDS = 5.0
#: A killed process ends as a shell would say.
_KILLED = 128


def main() -> None:
    address = sys.argv[1]
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen(64)
        allow_files()
        preload()
        request = Server(listener).serve()
    if request is None:
        with contextlib.suppress(OSError):
            os.unlink(address)
            os.rmdir(os.path.dirname(address))
    else:
        become(request)


def allow_files() -> None:
    """As a JVM does for itself and whatever it starts: as many open files as there may be."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def preload() -> None:
    for name in PRELOADED:
        # What is not installed, or has another name in this release, is not needed.
        with contextlib.suppress(ImportError), _without_compiler():
            importlib.import_module(name)
    os.register_at_fork(after_in_child=_reseed)
    gc.collect()
    gc.freeze()


@contextlib.contextmanager
def _without_compiler() -> Iterator[None]:
    """Kernels that are not compiled yet are left to the process that needs them: it takes seconds, for which
    all clients would wait."""
    absent: Any = None
    sys.modules.setdefault("numba", absent)
    try:
        yield
    finally:
        if sys.modules["numba"] is absent:
            del sys.modules["numba"]


def _reseed() -> None:
    """Random numbers of two processes are different ones."""
    if "numpy.random" in sys.modules:
        sys.modules["numpy.random"].seed()


class Server:
    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener
        self._selector = selectors.DefaultSelector()
        self._forks: dict[int, socket.socket] = {}
        self._has_driver = True
        self._ended, self._wake = socket.socketpair()
        for each in (self._ended, self._wake):
            each.setblocking(False)

    def serve(self) -> Request | None:
        """Returns in a fork what it is to be, and in the server None when driver and forks are gone."""
        signal.set_wakeup_fd(self._wake.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for each in (sys.stdin.fileno(), self._listener, self._ended):
            self._selector.register(each, selectors.EVENT_READ)
        while self._has_driver or self._forks:
            for key, _ in self._selector.select():
                if key.fileobj == sys.stdin.fileno():
                    self._retire()
                elif key.fileobj is self._listener and self._has_driver:
                    request = self._accept()
                    if request is not None:
                        return request
                elif key.fileobj is self._ended:
                    self._reap()
                elif key.data in self._forks:
                    self._lost(key.data)
        return None

    def _retire(self) -> None:
        """The driver is gone: whoever still wants a process is to start it himself."""
        self._has_driver = False
        self._selector.unregister(sys.stdin.fileno())
        self._selector.unregister(self._listener)
        self._listener.close()

    def _accept(self) -> Request | None:
        """Serve a client; in the fork, what it asked for."""
        connection, _ = self._listener.accept()
        try:
            connection.settimeout(_PATIENCE_SECONDS)
            request = receive(connection)
            fork = _fork(request)
        except (OSError, ValueError):
            with contextlib.suppress(OSError):
                connection.sendall(_REFUSED)
            connection.close()
            return None
        if fork == 0:
            connection.close()
            self._leave()
            return request
        self._forks[fork] = connection
        self._selector.register(connection, selectors.EVENT_READ, fork)
        # A client that is gone meanwhile is noticed like any other.
        with contextlib.suppress(OSError):
            connection.sendall(ACCEPTED)
        return None

    def _leave(self) -> None:
        """A fork has nothing of the server's."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        self._selector.close()
        for each in (self._listener, self._ended, self._wake, *self._forks.values()):
            each.close()

    def _reap(self) -> None:
        """Tell the clients of forks that have ended."""
        with contextlib.suppress(BlockingIOError):
            self._ended.recv(4096)
        for fork in list(self._forks):
            found, status = os.waitpid(fork, os.WNOHANG)
            if found:
                code = os.waitstatus_to_exitcode(status)
                self._farewell(self._forks.pop(fork), code if code >= 0 else _KILLED - code)

    def _farewell(self, connection: socket.socket, code: int) -> None:
        with contextlib.suppress(KeyError):
            self._selector.unregister(connection)
        with contextlib.suppress(OSError):
            connection.sendall(bytes([code]))
        connection.close()

    def _lost(self, fork: int) -> None:
        """A client was killed, and so is the process it stands for; it is reaped like any other."""
        self._selector.unregister(self._forks[fork])
        os.kill(fork, signal.SIGTERM)


def _fork(request: Request) -> int:
    """The files belong to the fork, whether or not there is one."""
    fork = -1
    try:
        with warnings.catch_warnings():
            # Newer releases of Python warn of threads: of the one that Arrow's allocator has.
            warnings.simplefilter("ignore", DeprecationWarning)
            fork = os.fork()
    finally:
        if fork != 0:
            close(request.files)
    return fork


if __name__ == "__main__":
    main()
