"""The fork server: imports the modules that Spark's Python processes need, then forks one per client.

    python -m moldau.pipelines.spark.fork_server.server SOCKET

Standard input is a pipe from the driver, closed when the driver exits. From then on the server accepts no
clients, and exits after the last of its forks: their clients may still be killed. The server has a single
thread and imports nothing that starts threads, which a fork would not have. (Arrow's allocator has one and
handles forks.)
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

from moldau.base.child_exits import ChildExits
from moldau.pipelines.spark.fork_server.client import ACCEPTED
from moldau.pipelines.spark.fork_server.requests import Request, become, close, receive

#: Modules that a session's Python processes import. A module that is run as a program is not listed, only its
#: imports. The kernels are not listed either: compiling them takes seconds the first time, and Spark waits
#: 10 s for some processes.
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
    "moldau.client.batches.reader",
    "moldau.client.batches.writer",
)
_REFUSED = b"-"
#: Maximum time for a client to send its request.
_REQUEST_TIMEOUT_SECONDS = 5.0
#: A shell's exit code for a process killed by a signal is this plus the signal's number.
_KILLED = 128


def main() -> None:
    address = sys.argv[1]
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen(64)
        raise_open_files_limit()
        preload()
        request = Server(listener).serve()
    if request is None:
        with contextlib.suppress(OSError):
            os.unlink(address)
            os.rmdir(os.path.dirname(address))
    else:
        become(request)


def raise_open_files_limit() -> None:
    """Raise the soft limit of open files to the hard limit, as a JVM does for the processes it starts."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def preload() -> None:
    """Import the modules, skipping those that are not installed or have another name in this release."""
    for name in PRELOADED:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    with contextlib.suppress(ImportError):
        from moldau.pipelines.arrow.kernels import initialize

        initialize()
    os.register_at_fork(after_in_child=_reseed)
    gc.collect()
    gc.freeze()


def _reseed() -> None:
    """Give every fork its own random numbers."""
    if "numpy.random" in sys.modules:
        sys.modules["numpy.random"].seed()


class Server:
    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener
        self._selector = selectors.DefaultSelector()
        #: The connection of the client of each fork.
        self._forks: dict[int, socket.socket] = {}
        self._has_driver = True
        self._exits = ChildExits()

    def serve(self) -> Request | None:
        """Return the request to run in a fork; None in the server once driver and forks have exited."""
        for each in (sys.stdin.fileno(), self._listener, self._exits):
            self._selector.register(each, selectors.EVENT_READ)
        while self._has_driver or self._forks:
            for key, _ in self._selector.select():
                if key.fileobj == sys.stdin.fileno():
                    self._stop_accepting()
                elif key.fileobj is self._listener and self._has_driver:
                    request = self._accept()
                    if request is not None:
                        return request
                elif key.fileobj is self._exits:
                    self._report_exits()
                elif key.data in self._forks:
                    self._terminate(key.data)
        return None

    def _stop_accepting(self) -> None:
        """Close the listener: clients then start their processes themselves."""
        self._has_driver = False
        self._selector.unregister(sys.stdin.fileno())
        self._selector.unregister(self._listener)
        self._listener.close()

    def _accept(self) -> Request | None:
        """Serve a client; return its request in the fork."""
        connection, _ = self._listener.accept()
        try:
            connection.settimeout(_REQUEST_TIMEOUT_SECONDS)
            request = receive(connection)
            fork = _fork(request)
        except (OSError, ValueError):
            with contextlib.suppress(OSError):
                connection.sendall(_REFUSED)
            connection.close()
            return None
        if fork == 0:
            connection.close()
            self._close_in_fork()
            return request
        self._forks[fork] = connection
        self._selector.register(connection, selectors.EVENT_READ, fork)
        # If the client is gone, its connection becomes readable.
        with contextlib.suppress(OSError):
            connection.sendall(ACCEPTED)
        return None

    def _close_in_fork(self) -> None:
        self._exits.reset()
        self._selector.close()
        for each in (self._listener, *self._forks.values()):
            each.close()

    def _report_exits(self) -> None:
        """Send the exit code of each fork that has exited to its client."""
        for fork, status in self._exits.collect(self._forks):
            code = os.waitstatus_to_exitcode(status)
            self._report(self._forks.pop(fork), code if code >= 0 else _KILLED - code)

    def _report(self, connection: socket.socket, code: int) -> None:
        with contextlib.suppress(KeyError):
            self._selector.unregister(connection)
        with contextlib.suppress(OSError):
            connection.sendall(bytes([code]))
        connection.close()

    def _terminate(self, fork: int) -> None:
        """Terminate the fork of a client that was killed."""
        self._selector.unregister(self._forks[fork])
        os.kill(fork, signal.SIGTERM)


def _fork(request: Request) -> int:
    """Fork; the files of the request stay open only in the fork."""
    fork = -1
    try:
        with warnings.catch_warnings():
            # Python 3.12 and newer warn because of the thread of Arrow's allocator.
            warnings.simplefilter("ignore", DeprecationWarning)
            fork = os.fork()
    finally:
        if fork != 0:
            close(request.files)
    return fork


if __name__ == "__main__":
    main()
