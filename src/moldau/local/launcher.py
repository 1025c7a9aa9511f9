"""Starts nodes quickly: one helper process imports the broker once and forks a node for every request.

The test process and the launcher (`launcher_process.py`) share a socket. A request is a line of JSON, and
with it travels one end of a socket pair through which the node is heard: its process id, then its ports or
the reason it could not start, at last its exit code, sent when the process is gone and its ports and locks
are free. The other way round, a node lives only as long as the test process holds its end of the pair. So
nothing is left running when an object is forgotten, a start is interrupted or the test process is killed.
A second pair carries orders to the node: which of its links to other nodes are cut.
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
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import moldau
from moldau.local.link_orders import Orders

#: `-P` and the end of the path: neither the current folder nor ours hides a module of the standard library.
_PROGRAM = (
    "import sys; sys.path.append(sys.argv[2]); from moldau.local import launcher_process as l; l.main()"
)
_PATIENCE_S = 0.05
_LONG_ENOUGH_S = 10.0


class NodeFailed(RuntimeError):
    """The node did not start; the message is what it said."""


class PortTaken(NodeFailed):
    """Another process has a port that the node was to listen on."""


class NodeSilent(NodeFailed):
    """The node ended, or did nothing for too long, without saying why."""


@dataclass(frozen=True, slots=True)
class StartOrder:
    """A node to start."""

    properties: dict[str, str]
    log_file: str
    #: A folder to remove if the node has to be ended for us.
    temporary: str | None = None
    #: Arguments of `FormatOptions`, for a folder that is not formatted yet.
    format: dict[str, str | bool] = field(default_factory=dict)
    #: The ports the node is cut off from: what it says does not get there, what they say does not get here.
    outgoing: list[int] = field(default_factory=list)
    incoming: list[int] = field(default_factory=list)


class NodeProcess:
    """A node as the test process sees it. Letting go of this object ends the node."""

    def __init__(self, reports: socket.socket, orders: socket.socket) -> None:
        self._reports = reports.detach()
        self._let_go = weakref.finalize(self, _close, self._reports, orders)
        self.orders = Orders(orders)
        self._lock = threading.Lock()
        self._buffer = b""
        self._said: dict[str, Any] = {}

    @property
    def pid(self) -> int:
        deadline = time.monotonic() + _LONG_ENOUGH_S
        while "pid" not in self._said and time.monotonic() < deadline and self.alive():
            self._listen(_PATIENCE_S)
        if "pid" not in self._said:
            raise NodeFailed("the process that starts nodes does not answer")
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


def _close(reports: int, orders: socket.socket) -> None:
    os.close(reports)
    orders.close()


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

    def start(self, order: StartOrder) -> NodeProcess:
        request = {**asdict(order), "folder": _current_folder()}
        reports, their_reports = socket.socketpair()
        orders, their_orders = socket.socketpair()
        node = NodeProcess(reports, orders)
        with their_reports, their_orders, self._lock:
            try:
                line = json.dumps(request).encode() + b"\n"
                self._send(line, [their_reports.fileno(), their_orders.fileno()])
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

    def _send(self, line: bytes, descriptors: list[int]) -> None:
        sent = socket.send_fds(self._socket, [line], descriptors)
        self._socket.sendall(line[sent:])


def _current_folder() -> str | None:
    try:
        return os.getcwd()
    except FileNotFoundError:
        return None
