"""The launcher process: it has the broker imported and forks a node for every request (see `launcher.py`).

It has one thread, which makes forking safe. It waits for three events: a request, the exit of a node
(SIGCHLD), and the owner closing its end of a node's report socket, upon which the node is killed. When the
owner is gone, the launcher kills all nodes and removes their temporary folders.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import select
import shutil
import signal
import socket
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from moldau.base.child_exits import ChildExits

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

    from moldau.network.connector import OpenConnection
    from moldau.server.run import MakeLinks

#: Called in a new node with its loop, its control socket and the request's extra values. The result opens the
#: node's connections to other nodes.
MakeOpenConnection = Callable[["AbstractEventLoop", socket.socket, dict[str, Any]], "OpenConnection"]

#: Interval between checks that the owner is still the parent process: a child of it may hold its socket open.
_PARENT_CHECK_MS = 500
_LOG_FORMAT = "[%(asctime)s] %(levelname)s %(message)s (%(name)s)"


@dataclass(slots=True)
class _Node:
    pid: int
    reports: socket.socket
    temporary: str | None
    killed: bool = False

    def report(self, **fields: Any) -> None:
        with contextlib.suppress(OSError):
            self.reports.sendall(json.dumps(fields).encode() + b"\n")

    def kill(self) -> None:
        self.killed = True
        os.kill(self.pid, signal.SIGKILL)

    def exited(self, status: int) -> None:
        """Report the exit code; the process's ports and locks are free by now."""
        if self.killed and self.temporary is not None:
            shutil.rmtree(self.temporary, ignore_errors=True)
        self.report(exit_code=os.waitstatus_to_exitcode(status))
        self.reports.close()


def main(make_open_connection: MakeOpenConnection | None = None) -> None:
    # Imported once, before the first fork, for all nodes.
    from moldau.server import run  # noqa: F401

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _exit)
    process = _LauncherProcess(socket.socket(fileno=int(sys.argv[1])), make_open_connection)
    try:
        process.serve()
    finally:
        process.close()


def _exit(number: int, frame: object) -> NoReturn:
    sys.exit(128 + number)


class _LauncherProcess:
    def __init__(self, channel: socket.socket, make_open_connection: MakeOpenConnection | None) -> None:
        self._channel = channel
        self._make_open_connection = make_open_connection
        self._parent = os.getppid()
        self._pending = b""
        #: Sockets of requests that are not completely read yet.
        self._received: list[socket.socket] = []
        self._nodes: dict[int, _Node] = {}
        self._exits = ChildExits()

    def serve(self) -> None:
        """Serve until the owner closes its end or exits."""
        while os.getppid() == self._parent:
            ready = self._wait()
            for pid, status in self._exits.collect(self._nodes):
                self._nodes.pop(pid).exited(status)
            for node in self._nodes.values():
                if node.reports.fileno() in ready and not node.killed:
                    node.kill()
            if self._channel.fileno() in ready and not self._take_requests():
                return

    def close(self) -> None:
        for node in self._nodes.values():
            node.kill()
        for node in self._nodes.values():
            node.exited(os.waitpid(node.pid, 0)[1])

    def _wait(self) -> set[int]:
        poll = select.poll()
        poll.register(self._channel, select.POLLIN)
        poll.register(self._exits, select.POLLIN)
        for node in self._nodes.values():
            if not node.killed:
                poll.register(node.reports, select.POLLIN)
        return {descriptor for descriptor, _ in poll.poll(_PARENT_CHECK_MS)}

    def _take_requests(self) -> bool:
        """Start the requested nodes; return False when the owner has closed the channel."""
        data, descriptors, _, _ = socket.recv_fds(self._channel, 65536, 16)
        self._received.extend(socket.socket(fileno=descriptor) for descriptor in descriptors)
        *lines, self._pending = (self._pending + data).split(b"\n")
        for line in lines:
            reports, control = self._received.pop(0), self._received.pop(0)
            with control:
                self._start(json.loads(line), reports, control)
        return bool(data)

    def _start(self, request: dict[str, Any], reports: socket.socket, control: socket.socket) -> None:
        pid = os.fork()
        if not pid:
            self._become_node(request, reports, control)
        node = self._nodes[pid] = _Node(pid, reports, request["temporary"])
        node.report(pid=pid)

    def _become_node(
        self, request: dict[str, Any], reports: socket.socket, control: socket.socket
    ) -> NoReturn:
        status = 1
        try:
            self._release()
            status = _run_node(request, reports, self._links(control, request))
        finally:
            # Never return into the launcher's loop: this is the node's process.
            if sys.exc_info()[0] is not None:
                traceback.print_exc()
            os._exit(status)

    def _links(self, control: socket.socket, request: dict[str, Any]) -> MakeLinks | None:
        make = self._make_open_connection
        return None if make is None else lambda loop: make(loop, control, request["extra"])

    def _release(self) -> None:
        """Close the sockets and reset the signals of the launcher and of the other nodes."""
        self._exits.reset()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        others = [node.reports for node in self._nodes.values()]
        for each in (self._channel, *self._received, *others):
            each.close()


def _run_node(request: dict[str, Any], reports: socket.socket, make_links: MakeLinks | None) -> int:
    from moldau.network.listener import ListenError
    from moldau.server import run
    from moldau.server.startup.format import FormatOptions

    _redirect(request["log_file"])
    if request["folder"] is not None:
        os.chdir(request["folder"])
    logging.basicConfig(level=logging.INFO, format=_LOG_FORMAT)

    def report(**fields: Any) -> None:
        reports.sendall(json.dumps(fields).encode() + b"\n")

    try:
        run.format_if_needed(request["properties"], FormatOptions(**request["format"]))
        return run.run_node(
            request["properties"], on_ready=lambda ports: report(ports=ports), make_links=make_links
        )
    except run.StartError as error:
        report(failed=str(error), port_taken=isinstance(error.__cause__, ListenError))
        return 1


def _redirect(log_file: str) -> None:
    output = os.open(log_file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    null = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((null, 0), (output, 1), (output, 2)):
        os.dup2(source, target)
    os.close(output)
    os.close(null)
