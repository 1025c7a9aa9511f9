"""Starts nodes quickly: one helper process imports the broker once and forks a node for every request.

The test process and the launcher (`launcher_process.py`) share a socket. A request is a line of JSON, and
with it travels one end of a socket pair through which the node is heard: its process id, then its ports or
the reason it could not start, at last its exit code, sent when the process is gone and its ports and locks
are free. The other way round, a node lives only as long as the test process holds its end of the pair. So
nothing is left running when an object is forgotten, a start is interrupted or the test process is killed.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
import weakref
from pathlib import Path
from typing import Any

import moldau

#: `-P` and the end of the path: neither the current folder nor ours hides a module of the standard library.
_PROGRAM = (
    "import sys; sys.path.append(sys.argv[2]); from moldau.testing import launcher_process as l; l.main()"
)
_PATIENCE_S = 0.05
_LONG_ENOUGH_S = 10.0


class NodeFailed(RuntimeError):
    """The node did not start; the message is what it said."""


class PortTaken(NodeFailed):
    """Another process has a port that the node was to listen on."""


class NodeSilent(NodeFailed):
    """The node ended, or did nothing for too long, without saying why."""


class NodeProcess:
    """A node as the test process sees it. Letting go of this object ends the node."""

    def __init__(self, reports: socket.socket) -> None:
        self._reports = reports.detach()
        self._let_go = weakref.finalize(self, os.close, self._reports)
        self._lock = threading.Lock()
        self._buffer = b""
        self._said: dict[str, Any] = {}

    @property
    def pid(self) -> int:
        return int(self._said["pid"])

    @property
    def exit_code(self) -> int | None:
        """As `subprocess` has it: negative for a signal. None if nobody can tell (the launcher died)."""
        code = self._said.get("exit_code")
        return None if code is None else int(code)

    def alive(self) -> bool:
        self._listen(0)
        return self._let_go.alive

    def wait_ready(self, timeout: float) -> dict[str, int]:
        deadline = time.monotonic() + timeout
        while "ports" not in self._said:
            if "failed" in self._said:
                raise (PortTaken if self._said["port_taken"] else NodeFailed)(str(self._said["failed"]))
            if not self._let_go.alive:
                raise NodeSilent("the node ended before it was ready")
            if time.monotonic() > deadline:
                raise NodeSilent(f"the node was not ready within {timeout:g} s")
            self._listen(deadline - time.monotonic())
        return {str(name): int(port) for name, port in self._said["ports"].items()}

    def wait_ended(self, timeout: float) -> bool:
        """Whether the node is gone, at the latest after `timeout` seconds."""
        deadline = time.monotonic() + timeout
        while self.alive():
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            self._listen(left)
        return True

    def end(self) -> None:
        """Kill the node, if it still lives, and wait until it is gone."""
        deadline = time.monotonic() + _LONG_ENOUGH_S
        while self.alive() and "pid" not in self._said and time.monotonic() < deadline:
            self._listen(_PATIENCE_S)
        if self.alive() and "pid" in self._said:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            self.wait_ended(_LONG_ENOUGH_S)
        with self._lock:
            self._let_go()

    def _listen(self, timeout: float) -> None:
        """Take in what was said, waiting for it a moment, at most `timeout` seconds."""
        with self._lock:
            if not self._let_go.alive:
                return
            poll = select.poll()
            poll.register(self._reports, select.POLLIN)
            if not poll.poll(min(max(timeout, 0), _PATIENCE_S) * 1000):
                return
            try:
                data = os.read(self._reports, 65536)
            except ConnectionResetError:
                data = b""
            *lines, self._buffer = (self._buffer + data).split(b"\n")
            for line in lines:
                self._said.update(json.loads(line))
            if not data or "exit_code" in self._said:
                self._let_go()


class Launcher:
    """The test process's end. One launcher serves the whole process; it starts with the first node."""

    _shared: Launcher | None = None
    _lock = threading.Lock()

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        root = Path(moldau.__file__).parents[1]
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", _PROGRAM, str(theirs.fileno()), str(root)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        self._socket = ours
        self._owner = os.getpid()
        atexit.register(self.close)

    @classmethod
    def shared(cls) -> Launcher:
        with cls._lock:
            if cls._shared is None or not cls._shared._usable():
                cls._shared = Launcher()
            return cls._shared

    def start(self, properties: dict[str, str], log_file: str, temporary: str | None = None) -> NodeProcess:
        """Ask for a node. `temporary` is a folder to remove if the node has to be ended for us."""
        request = {
            "properties": properties,
            "log_file": log_file,
            "folder": _current_folder(),
            "temporary": temporary,
        }
        ours, theirs = socket.socketpair()
        node = NodeProcess(ours)
        with theirs, self._lock:
            try:
                self._send(json.dumps(request).encode() + b"\n", theirs.fileno())
            except OSError as error:
                raise NodeFailed(
                    "the process that starts nodes is gone; what it said is on stderr"
                ) from error
        return node

    def close(self) -> None:
        if self._owner != os.getpid():
            return
        self._socket.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_LONG_ENOUGH_S)

    def _usable(self) -> bool:
        """A forked child must not talk into its parent's socket."""
        return self._owner == os.getpid() and self._process.poll() is None

    def _send(self, line: bytes, descriptor: int) -> None:
        sent = socket.send_fds(self._socket, [line], [descriptor])
        self._socket.sendall(line[sent:])


def _current_folder() -> str | None:
    try:
        return os.getcwd()
    except FileNotFoundError:
        return None
