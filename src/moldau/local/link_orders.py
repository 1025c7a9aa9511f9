"""How a test tells a running node which of its links are cut.

An order is a line of JSON with the ports and a number; the number goes back once the order is in force. A
node that is paused answers when it goes on, and one that is gone never: whoever gives the order waits only so
long.
"""

from __future__ import annotations

import json
import select
import socket
import threading
import time
from collections.abc import Collection
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

    from moldau.local.links import Links


class Orders:
    """The test's end."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._lock = threading.Lock()
        self._given = self._obeyed = 0
        self._buffer = b""

    def cut(self, outgoing: Collection[int], incoming: Collection[int], timeout: float) -> bool:
        """Whether exactly these ports are cut off from the node now; False if it did not say so in time."""
        deadline = time.monotonic() + timeout
        with self._lock:
            self._given += 1
            order = {"number": self._given, "outgoing": sorted(outgoing), "incoming": sorted(incoming)}
            try:
                self._channel.sendall(json.dumps(order).encode() + b"\n")
                while self._obeyed < self._given and (left := deadline - time.monotonic()) > 0:
                    self._listen(left)
            except ConnectionError:
                return False
            return self._obeyed == self._given

    def _listen(self, timeout: float) -> None:
        poll = select.poll()
        poll.register(self._channel, select.POLLIN)
        if not poll.poll(timeout * 1000):
            return
        data = self._channel.recv(4096)
        if not data:
            raise ConnectionResetError
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        for line in lines:
            self._obeyed = int(line)


class ObeyOrders:
    """The node's end."""

    def __init__(self, channel: socket.socket, links: Links) -> None:
        self._channel = channel
        self._links = links
        self._buffer = b""

    def listen(self, loop: AbstractEventLoop) -> None:
        self._channel.setblocking(False)
        loop.add_reader(self._channel, self._readable, loop)

    def _readable(self, loop: AbstractEventLoop) -> None:
        data = self._channel.recv(65_536)
        if not data:
            loop.remove_reader(self._channel)
            return
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        for line in lines:
            order = json.loads(line)
            self._links.cut(order["outgoing"], order["incoming"])
            self._channel.send(b"%d\n" % order["number"])
