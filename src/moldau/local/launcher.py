"""Start nodes quickly: a launcher process imports the broker once and forks a node for every request.

This module is the side of the process that starts nodes (the owner); `launcher_process` is the launcher.
They share a socket. A request is a line of JSON, sent together with one end of each of two socket pairs:

- reports: the launcher sends the node's process id, the node its ports or the reason why it did not start,
  and the launcher its exit code, once the process is gone and its ports and locks are free. A node runs
  only as long as the owner holds its end of this pair, so no node is left running when an object is
  dropped, a start is interrupted or the owner is killed;
- control: reserved for the launcher's entry point, for example to inject faults into a running node.
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
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import moldau

#: A module whose `main` serves a launcher without extras.
ENTRY_POINT = "moldau.local.launcher_process"
#: `-P`, and our folder at the end of the path: neither it nor the current one hides a standard module.
_PROGRAM = "import importlib, sys; sys.path.append(sys.argv[2]); importlib.import_module(sys.argv[3]).main()"
_POLL_SECONDS = 0.05
_TIMEOUT_SECONDS = 10.0


class NodeFailed(RuntimeError):
    """The node did not start; the message is the reason it reported."""


class PortTaken(NodeFailed):
    """Another process uses a port of the node."""


class NodeSilent(NodeFailed):
    """The node exited or timed out without reporting a reason."""


@dataclass(frozen=True, slots=True)
class StartRequest:
    """A node to start."""

    properties: dict[str, str]
    log_file: str
    #: A folder to remove if the owner goes away while the node runs.
    temporary: str | None = None
    #: Arguments of `FormatOptions`, for a folder that is not formatted yet.
    format: Mapping[str, str | bool | Sequence[str]] = field(default_factory=dict)
    #: Values for the launcher's entry point; must be JSON.
    extra: Mapping[str, Any] = field(default_factory=dict)


class NodeProcess:
    """A node as its owner sees it. Dropping this object kills the node."""

    def __init__(self, reports: socket.socket, control: socket.socket) -> None:
        self.control = control
        self._reports = reports.detach()
        self._disconnect = weakref.finalize(self, _close, self._reports, control)
        self._lock = threading.Lock()
        self._buffer = b""
        self._reported: dict[str, Any] = {}

    @property
    def pid(self) -> int:
        deadline = time.monotonic() + _TIMEOUT_SECONDS
        while "pid" not in self._reported and time.monotonic() < deadline and self.alive():
            self._receive(_POLL_SECONDS)
        if "pid" not in self._reported:
            raise NodeFailed("the launcher process does not answer")
        return int(self._reported["pid"])

    @property
    def exit_code(self) -> int | None:
        """As in `subprocess`: negative for a signal. None if the launcher process has exited."""
        code = self._reported.get("exit_code")
        return None if code is None else int(code)

    def alive(self) -> bool:
        self._receive(0)
        return self._disconnect.alive

    def wait_ready(self, timeout: float) -> dict[str, int]:
        """Wait until the node serves requests; return the port of every listener."""
        deadline = time.monotonic() + timeout
        while "ports" not in self._reported:
            if "failed" in self._reported:
                failure = PortTaken if self._reported["port_taken"] else NodeFailed
                raise failure(str(self._reported["failed"]))
            if not self._disconnect.alive:
                raise NodeSilent("the node exited before it was ready")
            if time.monotonic() > deadline:
                raise NodeSilent(f"the node was not ready within {timeout:g} s")
            self._receive(deadline - time.monotonic())
        return {str(name): int(port) for name, port in self._reported["ports"].items()}

    def wait_ended(self, timeout: float) -> bool:
        """Return whether the node exits within `timeout` seconds."""
        deadline = time.monotonic() + timeout
        while self.alive():
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            self._receive(left)
        return True

    def end(self) -> None:
        """Kill the node if it still runs, and wait until it is gone."""
        deadline = time.monotonic() + _TIMEOUT_SECONDS
        while self.alive() and "pid" not in self._reported and time.monotonic() < deadline:
            self._receive(_POLL_SECONDS)
        if self.alive() and "pid" in self._reported:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            self.wait_ended(_TIMEOUT_SECONDS)
        with self._lock:
            self._disconnect()

    def _receive(self, timeout: float) -> None:
        """Read reports, waiting for them at most `timeout` seconds and at most `_POLL_SECONDS`."""
        with self._lock:
            if not self._disconnect.alive:
                return
            poll = select.poll()
            poll.register(self._reports, select.POLLIN)
            if not poll.poll(min(max(timeout, 0), _POLL_SECONDS) * 1000):
                return
            try:
                data = os.read(self._reports, 65536)
            except ConnectionResetError:
                data = b""
            *lines, self._buffer = (self._buffer + data).split(b"\n")
            for line in lines:
                self._reported.update(json.loads(line))
            if not data or "exit_code" in self._reported:
                self._disconnect()


def _close(reports: int, control: socket.socket) -> None:
    os.close(reports)
    control.close()


class Launcher:
    """The owner's side of a launcher process.

    One launcher of each entry point serves the whole process; it starts with the first node. The entry
    point is a module with a function `main`, which runs in the launcher process.
    """

    _shared: ClassVar[dict[str, Launcher]] = {}
    _lock: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self, entry_point: str = ENTRY_POINT) -> None:
        ours, theirs = socket.socketpair()
        root = Path(moldau.__file__).parents[1]
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", _PROGRAM, str(theirs.fileno()), str(root), entry_point],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        self._socket = ours
        self._owner = os.getpid()
        atexit.register(self.close)

    @classmethod
    def shared(cls, entry_point: str = ENTRY_POINT) -> Launcher:
        with cls._lock:
            known = cls._shared.get(entry_point)
            if known is None or not known._usable():
                known = cls._shared[entry_point] = Launcher(entry_point)
            return known

    def start(self, request: StartRequest) -> NodeProcess:
        fields = {**asdict(request), "folder": _current_folder()}
        reports, their_reports = socket.socketpair()
        control, their_control = socket.socketpair()
        node = NodeProcess(reports, control)
        with their_reports, their_control, self._lock:
            try:
                line = json.dumps(fields).encode() + b"\n"
                self._send(line, [their_reports.fileno(), their_control.fileno()])
            except OSError as error:
                raise NodeFailed("the launcher process has exited; its output is on stderr") from error
        return node

    def close(self) -> None:
        if self._owner != os.getpid():
            return
        self._socket.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_TIMEOUT_SECONDS)

    def _usable(self) -> bool:
        """Whether the launcher runs and is ours: a forked child must not use its parent's socket."""
        return self._owner == os.getpid() and self._process.poll() is None

    def _send(self, line: bytes, descriptors: list[int]) -> None:
        sent = socket.send_fds(self._socket, [line], descriptors)
        self._socket.sendall(line[sent:])


def _current_folder() -> str | None:
    try:
        return os.getcwd()
    except FileNotFoundError:
        return None
