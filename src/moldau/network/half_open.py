"""Connections whose clients have not logged in yet: their number and their age are bounded.

A client needs a few round trips to log in. One that connects and stays silent, or sends its tokens slowly,
holds a socket and buffers without being known. The oldest of them makes room for a new one, and none stays
longer than `MAX_SECONDS`. Apache Kafka keeps them for `connections.max.idle.ms`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from moldau.network.connection import Connection

logger = logging.getLogger(__name__)

MAX_CONNECTIONS: Final = 2000
MAX_SECONDS: Final = 60.0


class HalfOpenConnections:
    """In order of arrival. Connections that have logged in are forgotten when they are met."""

    def __init__(self, max_connections: int = MAX_CONNECTIONS, max_seconds: float = MAX_SECONDS) -> None:
        self._max_connections = max_connections
        self._max_seconds = max_seconds
        self._opened_at: dict[Connection, float] = {}

    def __len__(self) -> int:
        return len(self._opened_at)

    def opened(self, connection: Connection, now: float) -> None:
        self._opened_at[connection] = now
        if len(self._opened_at) > self._max_connections:
            self._close_while(lambda _: len(self._opened_at) > self._max_connections)

    def closed(self, connection: Connection) -> None:
        self._opened_at.pop(connection, None)

    def expire(self, now: float) -> None:
        """Close the connections that had enough time to log in."""
        limit = now - self._max_seconds
        self._close_while(lambda opened_at: opened_at < limit)

    def _close_while(self, condition: Callable[[float], bool]) -> None:
        """Forget connections that logged in and close others, oldest first, while the condition holds."""
        while self._opened_at:
            connection, opened_at = next(iter(self._opened_at.items()))
            if not condition(opened_at):
                return
            del self._opened_at[connection]
            if connection.principal is None:
                logger.info("closing the connection from %s: it did not log in", connection.peer_host)
                connection.abort()
