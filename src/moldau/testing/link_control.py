"""Cut and heal the network links of a running node from the test process.

`LinkControl` is the test's side, `serve_link_control` the node's. A command is a line of JSON with the
complete set of cut ports and a sequence number; the node sends the number back once the command is in
effect. A paused node acknowledges after it is resumed, a dead one never does, so the test waits only until
a timeout.

This module is also the entry point of the launcher that forks such nodes (see `local/launcher.py`).
"""

from __future__ import annotations

import json
import select
import socket
import threading
import time
from collections.abc import Collection
from typing import TYPE_CHECKING, Any, Final

from moldau.local import launcher_process
from moldau.testing.links import Links

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

    from moldau.network.connector import OpenConnection

#: The launcher's entry point for nodes whose links can be cut.
ENTRY_POINT: Final = __name__


def main() -> None:
    """Serve a launcher whose nodes have links that can be cut."""
    launcher_process.main(_open_with_faults)


def _open_with_faults(
    loop: AbstractEventLoop, channel: socket.socket, extra: dict[str, Any]
) -> OpenConnection:
    links = Links(extra["outgoing"], extra["incoming"])
    serve_link_control(loop, channel, links)
    return links.open


class LinkControl:
    """The test's side."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._lock = threading.Lock()
        self._sent = self._acknowledged = 0
        self._buffer = b""

    def cut(self, outgoing: Collection[int], incoming: Collection[int], timeout: float) -> bool:
        """Cut the links to exactly these ports; return whether the node acknowledged within `timeout` s."""
        deadline = time.monotonic() + timeout
        with self._lock:
            self._sent += 1
            command = {"number": self._sent, "outgoing": sorted(outgoing), "incoming": sorted(incoming)}
            try:
                self._channel.sendall(json.dumps(command).encode() + b"\n")
                while self._acknowledged < self._sent and (left := deadline - time.monotonic()) > 0:
                    self._receive(left)
            except ConnectionError:
                return False
            return self._acknowledged == self._sent

    def _receive(self, timeout: float) -> None:
        poll = select.poll()
        poll.register(self._channel, select.POLLIN)
        if not poll.poll(timeout * 1000):
            return
        data = self._channel.recv(4096)
        if not data:
            raise ConnectionResetError
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        for line in lines:
            self._acknowledged = int(line)


def serve_link_control(loop: AbstractEventLoop, channel: socket.socket, links: Links) -> None:
    """Apply the commands that arrive on `channel` to the node's links, until the test closes it."""
    pending = b""

    def readable() -> None:
        nonlocal pending
        data = channel.recv(65_536)
        if not data:
            loop.remove_reader(channel)
            return
        *lines, pending = (pending + data).split(b"\n")
        for line in lines:
            command = json.loads(line)
            links.cut(command["outgoing"], command["incoming"])
            channel.send(b"%d\n" % command["number"])

    channel.setblocking(False)
    loop.add_reader(channel, readable)
