"""Free ports, for nodes that must know each other's before the first of them is started.

On Linux the ports stay reserved: a socket that is bound there and does not listen keeps them from being
handed out as anybody's own end of a connection, also while a node is away, and lets the node listen.
Elsewhere they are only looked up.
"""

from __future__ import annotations

import socket
import sys

_HOLD = sys.platform == "linux"


class ReservedPorts:
    def __init__(self, host: str) -> None:
        self._host = host
        self._held: list[socket.socket] = []

    def any(self) -> int:
        """A port that is free."""
        return self._bind(0)

    def this(self, port: int) -> int:
        """A certain port; an `OSError` if somebody listens there."""
        return self._bind(port)

    def release(self) -> None:
        for each in self._held:
            each.close()
        self._held.clear()

    def _bind(self, port: int) -> int:
        reserved = socket.socket()
        try:
            reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            reserved.bind((self._host, port))
            port = int(reserved.getsockname()[1])
        except BaseException:
            reserved.close()
            raise
        self._held.append(reserved)
        return port

    def settle(self) -> None:
        """All are chosen; until now they were held so that no two are the same."""
        if not _HOLD:
            self.release()
