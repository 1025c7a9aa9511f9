"""The fork server: imports what workers need, then forks itself for every client that asks.

    python -m moldau.pipelines.forks.server SOCKET

Its standard input is the lifeline of the driver: when that is closed, the driver is gone and so is the
server. The server has a single thread, and imports nothing that starts others, which would be missing in a
fork. (Arrow's allocator has one of its own and knows about forks.)
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import runpy
import selectors
import signal
import socket
import struct
import sys
from collections.abc import Mapping
from typing import NamedTuple

from moldau.pipelines.forks import FIXED
from moldau.pipelines.forks.client import ACCEPTED

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
#: Spark asks for its own daemon where it takes no setting.
_QUIETER = {"pyspark.daemon": "moldau.pipelines.worker_daemon"}
_REFUSED = b"-"
#: A client that says nothing is not waited for.
_PATIENCE_SECONDS = 5.0
#: A killed process ends as a shell would say.
_KILLED = 128


class Request(NamedTuple):
    """A process that a client stands for."""

    folder: bytes
    arguments: list[str]
    environment: dict[bytes, bytes]
    files: list[int]


class Refused(Exception):
    """A client that cannot be served."""


def main() -> None:
    address = sys.argv[1]
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen(64)
        preload()
        request = Server(listener).serve()
    if request is None:
        with contextlib.suppress(OSError):
            os.unlink(address)
            os.rmdir(os.path.dirname(address))
    else:
        become(request)


def preload() -> None:
    for name in PRELOADED:
        # What is not installed, or has another name in this release, is not needed.
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    os.register_at_fork(after_in_child=_reseed)
    gc.collect()
    gc.freeze()


def _reseed() -> None:
    """Random numbers of two processes are different ones."""
    if "numpy.random" in sys.modules:
        sys.modules["numpy.random"].seed()


class Server:
    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener
        self._selector = selectors.DefaultSelector()
        self._forks: dict[int, socket.socket] = {}
        self._ended, self._wake = socket.socketpair()
        for each in (self._ended, self._wake):
            each.setblocking(False)

    def serve(self) -> Request | None:
        """Returns in a fork what it is to be, and in the server None when the driver is gone."""
        signal.set_wakeup_fd(self._wake.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for each in (sys.stdin.fileno(), self._listener, self._ended):
            self._selector.register(each, selectors.EVENT_READ)
        while True:
            for key, _ in self._selector.select():
                if key.fileobj == sys.stdin.fileno():
                    return None
                if key.fileobj is self._listener:
                    request = self._accept()
                    if request is not None:
                        return request
                elif key.fileobj is self._ended:
                    self._reap()
                else:
                    self._lost(key.data)

    def _accept(self) -> Request | None:
        """Serve a client; in the fork, what it asked for."""
        connection, _ = self._listener.accept()
        try:
            connection.settimeout(_PATIENCE_SECONDS)
            request = receive(connection)
            connection.sendall(ACCEPTED)
        except (OSError, Refused):
            with contextlib.suppress(OSError):
                connection.sendall(_REFUSED)
            connection.close()
            return None
        fork = os.fork()
        if fork == 0:
            connection.close()
            self._leave()
            return request
        for file in request.files:
            os.close(file)
        self._forks[fork] = connection
        self._selector.register(connection, selectors.EVENT_READ, fork)
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


def receive(connection: socket.socket) -> Request:
    """What a client sends, or `Refused` if a fork of this process would not be what it wants."""
    head, files, _, _ = socket.recv_fds(connection, 4, 3)
    if len(head) != 4 or len(files) != 3:
        raise Refused
    try:
        return _parsed(_exactly(connection, struct.unpack("I", head)[0]), files)
    except (OSError, Refused):
        for file in files:
            os.close(file)
        raise


def _parsed(text: bytes, files: list[int]) -> Request:
    folder, count, *words = text.split(b"\0")
    arguments = [os.fsdecode(word) for word in words[: int(count)]]
    environment = dict(word.split(b"=", 1) for word in words[int(count) :])
    if any(_entries(environment, name) != _entries(os.environb, name) for name in FIXED):
        raise Refused
    if arguments[:1] != ["-m"] or len(arguments) < 2:
        raise Refused
    return Request(folder, arguments[1:], environment, files)


def _entries(environment: Mapping[bytes, bytes], name: bytes) -> list[bytes]:
    """What a path says: Spark names the folders of the driver twice."""
    return list(dict.fromkeys(filter(None, environment.get(name, b"").split(b":"))))


def _exactly(connection: socket.socket, count: int) -> bytes:
    received = bytearray()
    while len(received) < count:
        part = connection.recv(count - len(received))
        if not part:
            raise Refused
        received += part
    return bytes(received)


def become(request: Request) -> None:
    """Be the process that was asked for, to its end."""
    for number, file in enumerate(request.files):
        os.dup2(file, number)
        os.close(file)
    os.environb.clear()
    os.environb.update(request.environment)
    os.chdir(request.folder)
    sys.path[0] = os.fsdecode(request.folder)
    sys.argv = request.arguments
    module = _QUIETER.get(request.arguments[0], request.arguments[0])
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
