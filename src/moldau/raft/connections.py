"""Which requests are on their way: one at a time to each node, and a pause after one that failed.

A request is forgotten when the role changes; what it still brings is then not expected any more.
"""

from __future__ import annotations

from dataclasses import dataclass

from moldau.raft.types import Outgoing


@dataclass(slots=True)
class _Connection:
    """Waits for an answer until then (`sent` is the question), or pauses until then."""

    until_ms: float
    sent: Outgoing | None = None


class Connections:
    def __init__(self, retry_backoff_ms: int, request_timeout_ms: int) -> None:
        self._retry_backoff_ms = retry_backoff_ms
        self._request_timeout_ms = request_timeout_ms
        self._connections: dict[int, _Connection] = {}
        #: Made and not yet taken by the driver.
        self._outbox: list[Outgoing] = []

    def send(self, request: Outgoing, now_ms: float) -> bool:
        """Whether it could be sent: nothing else is on its way there, and there is no pause."""
        if request.id in self._connections:
            return False
        self._connections[request.id] = _Connection(now_ms + self._request_timeout_ms, request)
        self._outbox.append(request)
        return True

    def take(self) -> tuple[Outgoing, ...]:
        taken = tuple(self._outbox)
        self._outbox.clear()
        return taken

    def expects(self, sent: Outgoing) -> bool:
        connection = self._connections.get(sent.id)
        return connection is not None and connection.sent is sent

    def is_ready(self, node_id: int) -> bool:
        return node_id not in self._connections

    def is_pausing(self, node_id: int) -> bool:
        connection = self._connections.get(node_id)
        return connection is not None and connection.sent is None

    @property
    def any_in_flight(self) -> bool:
        return any(connection.sent is not None for connection in self._connections.values())

    def succeeded(self, sent: Outgoing) -> None:
        if self.expects(sent):
            del self._connections[sent.id]

    def failed(self, sent: Outgoing, now_ms: float) -> None:
        if self.expects(sent):
            self._connections[sent.id] = _Connection(now_ms + self._retry_backoff_ms)

    def expire(self, now_ms: float) -> None:
        """Pauses end; a request whose answer is overdue has failed."""
        for node_id, connection in list(self._connections.items()):
            if now_ms < connection.until_ms:
                continue
            if connection.sent is None:
                del self._connections[node_id]
            else:
                self.failed(connection.sent, now_ms)

    def reset(self) -> None:
        self._connections.clear()
        self._outbox.clear()

    @property
    def next_deadline(self) -> float | None:
        return min((connection.until_ms for connection in self._connections.values()), default=None)
