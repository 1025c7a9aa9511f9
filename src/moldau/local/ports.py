"""Reserve ports for nodes that must know each other's ports before any of them starts.

Ports are chosen at random below the kernel's ephemeral range, so no outgoing connection of any process
takes one while its node is down. A reserved port is bound by a socket that does not listen. The bind is
exclusive, so two processes that choose at the same time never choose the same port; afterwards
`SO_REUSEADDR` lets the node bind the port and listen while the reservation lasts. Only Linux allows that:
elsewhere the port is free again at once, and only this object remembers it.
"""

from __future__ import annotations

import random
import socket
import sys
from collections.abc import Sequence
from pathlib import Path

_HOLD = sys.platform == "linux"
_FIRST_PORT = 10_000
_EPHEMERAL_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
#: The lowest ephemeral port of Linux by default; macOS and the BSDs begin higher.
_DEFAULT_FIRST_EPHEMERAL_PORT = 32_768
_ATTEMPTS = 1000


class ReservedPorts:
    """Ports of one host, reserved until `release`."""

    def __init__(self, host: str) -> None:
        self._host = host
        self._sockets: list[socket.socket] = []
        self._chosen: set[int] = set()

    def choose(self, offsets: Sequence[int] = (0,)) -> int:
        """Reserve an unused port and return it.

        With `offsets`, reserve a port for each of them: `port + offset` for the returned `port`.
        """
        candidates = range(_FIRST_PORT, _first_ephemeral_port() - max(offsets))
        for _ in range(_ATTEMPTS):
            port = random.SystemRandom().choice(candidates)
            if self._reserve_all([port + offset for offset in offsets]):
                return port
        raise OSError(f"no free port on {self._host} between {candidates.start} and {candidates.stop}")

    def hold(self, port: int) -> None:
        """Reserve a given port, even if another process has reserved it; `OSError` if one listens there."""
        self._bind(port, exclusive=False)

    def release(self) -> None:
        for each in self._sockets:
            each.close()
        self._sockets.clear()
        self._chosen.clear()

    def _reserve_all(self, ports: Sequence[int]) -> bool:
        if not self._chosen.isdisjoint(ports):
            return False
        before = len(self._sockets)
        try:
            for port in ports:
                self._bind(port, exclusive=True)
        except OSError:
            for each in self._sockets[before:]:
                each.close()
            del self._sockets[before:]
            return False
        self._chosen.update(ports)
        return True

    def _bind(self, port: int, *, exclusive: bool) -> None:
        reserved = socket.socket()
        try:
            if not exclusive:
                reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            reserved.bind((self._host, port))
            reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        except BaseException:
            reserved.close()
            raise
        if _HOLD:
            self._sockets.append(reserved)
        else:
            reserved.close()


def _first_ephemeral_port() -> int:
    try:
        first = int(_EPHEMERAL_RANGE.read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return _DEFAULT_FIRST_EPHEMERAL_PORT
    # A machine may hand out nearly all ports to connections; then any choice may meet one of them.
    return first if first > 2 * _FIRST_PORT else _DEFAULT_FIRST_EPHEMERAL_PORT
