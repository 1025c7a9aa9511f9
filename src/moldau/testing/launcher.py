"""Starts nodes quickly: one helper process imports everything once and forks a node for every request.

The test process and the launcher share a socket. A request is a line of JSON with the node's properties
and the path of its log, and with it travels the writing end of a pipe. The forked node reports through
that pipe: its process id, then its ports or the reason it could not start. The end of the pipe is the end
of the node, however it died. When the test process goes, the socket closes and the launcher takes its
nodes with it, so nothing is ever left running.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import logging
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from typing import Any

_FD_ENV = "MOLDAU_LAUNCHER_FD"


class NodeFailed(RuntimeError):
    """The node did not start; the message is what it said."""


class NodeProcess:
    """A node as the test process sees it: a pid and the pipe it reports through."""

    def __init__(self, reports: int) -> None:
        self._reports = reports
        self._buffer = b""
        self._ended = False
        self.pid = int(self._next_report(time.monotonic() + 10)["pid"])

    def alive(self) -> bool:
        if not self._ended:
            self._fill(0)
        return not self._ended

    def wait_ready(self, timeout: float) -> dict[str, int]:
        report = self._next_report(time.monotonic() + timeout)
        if "failed" in report:
            raise NodeFailed(str(report["failed"]))
        return {str(name): int(port) for name, port in report["ports"].items()}

    def _next_report(self, deadline: float) -> dict[str, Any]:
        while b"\n" not in self._buffer:
            if self._ended:
                raise NodeFailed("the node ended before it was ready")
            if time.monotonic() > deadline:
                raise NodeFailed("the node was not ready in time")
            self._fill(0.05)
        line, self._buffer = self._buffer.split(b"\n", 1)
        report: dict[str, Any] = json.loads(line)
        return report

    def _fill(self, timeout: float) -> None:
        readable, _, _ = select.select([self._reports], [], [], timeout)
        if readable:
            data = os.read(self._reports, 65536)
            self._buffer += data
            if not data:
                self._ended = True
                os.close(self._reports)


class Launcher:
    """The test process's end. One launcher serves the whole process; it starts with the first node."""

    _shared: Launcher | None = None
    _lock = threading.Lock()

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-c", "from moldau.testing.launcher import main; main()"],
                pass_fds=[theirs.fileno()],
                env={**os.environ, _FD_ENV: str(theirs.fileno())},
                start_new_session=True,
            )
        self._socket = ours
        atexit.register(self.close)

    @classmethod
    def shared(cls) -> Launcher:
        with cls._lock:
            if cls._shared is None or cls._shared._process.poll() is not None:
                cls._shared = Launcher()
            return cls._shared

    def start(self, properties: dict[str, str], log_file: str) -> NodeProcess:
        reading, writing = os.pipe()
        request = json.dumps({"properties": properties, "log_file": log_file}).encode() + b"\n"
        try:
            with self._lock:
                socket.send_fds(self._socket, [request], [writing])
        finally:
            os.close(writing)
        return NodeProcess(reading)

    def close(self) -> None:
        self._socket.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(10)


# The launcher process.


def main() -> None:
    from moldau.server import run  # noqa: F401  imported here, once, for all the forks

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    channel = socket.socket(fileno=int(os.environ.pop(_FD_ENV)))
    children: set[int] = set()
    pending = b""
    descriptors: list[int] = []
    while True:
        _reap(children)
        readable, _, _ = select.select([channel], [], [], 0.1)
        if not readable:
            continue
        data, received, _, _ = socket.recv_fds(channel, 65536, 1)
        descriptors.extend(received)
        if not data:
            break
        pending += data
        while b"\n" in pending:
            line, pending = pending.split(b"\n", 1)
            children.add(_fork_node(json.loads(line), descriptors.pop(0), channel))
    for pid in children:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _reap(children: set[int]) -> None:
    for pid in list(children):
        done, _ = os.waitpid(pid, os.WNOHANG)
        if done:
            children.discard(pid)


def _fork_node(request: dict[str, Any], reports: int, channel: socket.socket) -> int:
    pid = os.fork()
    if pid:
        os.close(reports)
        return pid
    status = 1
    try:
        channel.close()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        status = _run_node(request, reports)
    finally:
        # Never back into the launcher's loop: this is the node's process now.
        os._exit(status)


def _run_node(request: dict[str, Any], reports: int) -> int:
    from moldau.server import run

    log = os.open(request["log_file"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(log, 1)
    os.dup2(log, 2)

    logging.basicConfig(level=logging.INFO, format="[%(asctime)s] %(levelname)s %(message)s (%(name)s)")

    def report(**fields: Any) -> None:
        os.write(reports, json.dumps(fields).encode() + b"\n")

    report(pid=os.getpid())
    try:
        run.format_if_needed(request["properties"])
        return run.run_node(request["properties"], on_ready=lambda ports: report(ports=ports))
    except run.StartError as error:
        report(failed=str(error))
        return 1
