"""Connections whose clients have not logged in yet: their number and their age are bounded.

On listeners without SASL, these are the connections whose TLS handshake is not complete. A client needs a few
round trips to log in. One that connects and stays silent, or sends its tokens slowly,
holds a socket and buffers without being known. The oldest of them makes room for a new one, none stays
longer than `MAX_SECONDS`, and the largest are closed if all buffers together exceed `MAX_BUFFER_BYTES`.
Apache Kafka keeps them for `connections.max.idle.ms`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from moldau.base.log_throttle import Repeats
from moldau.network.connection import Connection

logger = logging.getLogger(__name__)

MAX_CONNECTIONS: Final = 2000
MAX_SECONDS: Final = 60.0
MAX_BUFFER_BYTES: Final = 128 * 1024 * 1024


class HalfOpenConnections:
    """In order of arrival."""

    def __init__(
        self,
        max_connections: int = MAX_CONNECTIONS,
        max_seconds: float = MAX_SECONDS,
        max_buffer_bytes: int = MAX_BUFFER_BYTES,
    ) -> None:
        self._max_connections = max_connections
        self._max_seconds = max_seconds
        self._max_buffer_bytes = max_buffer_bytes
        self._opened_at: dict[Connection, float] = {}
        self._repeats = Repeats(interval_s=1.0)

    def __len__(self) -> int:
        return len(self._opened_at)

    def opened(self, connection: Connection, now: float) -> None:
        self._opened_at[connection] = now
        if len(self._opened_at) > self._max_connections:
            self._close_while(lambda _: len(self._opened_at) > self._max_connections)

    def forget(self, connection: Connection) -> None:
        """The connection is closed, or its client has logged in or completed the TLS handshake."""
        self._opened_at.pop(connection, None)

    def expire(self, now: float) -> None:
        """Close the connections that had enough time to log in, and the largest if all are too large."""
        limit = now - self._max_seconds
        self._close_while(lambda opened_at: opened_at < limit)
        self._limit_buffers()

    def _limit_buffers(self) -> None:
        sizes = {each: each.buffer_bytes for each in self._opened_at}
        excess = sum(sizes.values()) - self._max_buffer_bytes
        if excess <= 0:
            return
        for connection in sorted(sizes, key=sizes.__getitem__, reverse=True):
            if excess <= 0:
                return
            excess -= sizes[connection]
            self._close(connection)

    def _close_while(self, condition: Callable[[float], bool]) -> None:
        """Close connections, oldest first, while the condition holds."""
        while self._opened_at:
            connection, opened_at = next(iter(self._opened_at.items()))
            if not condition(opened_at):
                return
            self._close(connection)

    def _close(self, connection: Connection) -> None:
        del self._opened_at[connection]
        reason = self._repeats.refusal(connection.peer_host, "it did not log in")
        if reason is not None:
            logger.info("closing the connection from %s: %s", connection.peer_host, reason)
        connection.abort()
