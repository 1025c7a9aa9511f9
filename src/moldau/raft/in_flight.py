"""Requests in flight: at most one to each node, with a backoff after a failed one.

A change of role discards all requests in flight; responses to them are ignored when they arrive.
"""

from __future__ import annotations

from dataclasses import dataclass

from moldau.raft.types import OutboundRequest


@dataclass(slots=True)
class _Connection:
    """Waits for the response to `sent` until `until_ms`, or backs off until then if `sent` is None."""

    until_ms: float
    sent: OutboundRequest | None = None


class InFlightRequests:
    def __init__(self, retry_backoff_ms: int, request_timeout_ms: int) -> None:
        self._retry_backoff_ms = retry_backoff_ms
        self._request_timeout_ms = request_timeout_ms
        self._connections: dict[int, _Connection] = {}
        #: Requests that the driver has not taken yet.
        self._outbox: list[OutboundRequest] = []

    def send(self, request: OutboundRequest, now_ms: float) -> bool:
        """Queue a request; False if another one to the node is in flight or the node is backing off."""
        if request.id in self._connections:
            return False
        self._connections[request.id] = _Connection(now_ms + self._request_timeout_ms, request)
        self._outbox.append(request)
        return True

    def take(self) -> tuple[OutboundRequest, ...]:
        taken = tuple(self._outbox)
        self._outbox.clear()
        return taken

    def expects(self, sent: OutboundRequest) -> bool:
        connection = self._connections.get(sent.id)
        return connection is not None and connection.sent is sent

    def is_ready(self, node_id: int) -> bool:
        return node_id not in self._connections

    def is_backing_off(self, node_id: int) -> bool:
        connection = self._connections.get(node_id)
        return connection is not None and connection.sent is None

    @property
    def any_in_flight(self) -> bool:
        return any(connection.sent is not None for connection in self._connections.values())

    def complete(self, sent: OutboundRequest) -> None:
        if self.expects(sent):
            del self._connections[sent.id]

    def fail(self, sent: OutboundRequest, now_ms: float) -> None:
        if self.expects(sent):
            self._connections[sent.id] = _Connection(now_ms + self._retry_backoff_ms)

    def expire(self, now_ms: float) -> None:
        """End backoffs, and fail requests whose response is overdue."""
        for node_id, connection in list(self._connections.items()):
            if now_ms < connection.until_ms:
                continue
            if connection.sent is None:
                del self._connections[node_id]
            else:
                self.fail(connection.sent, now_ms)

    def reset(self) -> None:
        self._connections.clear()
        self._outbox.clear()

    @property
    def next_deadline(self) -> float | None:
        return min((connection.until_ms for connection in self._connections.values()), default=None)
