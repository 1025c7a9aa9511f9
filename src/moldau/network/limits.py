"""Which connections of a node are served: they wait, are closed, or take the place of another.

A `ConnectionLimits` is shared by all listeners of a role; `ConnectionQuotas` counts and decides.

- Over `max.connections` or the creation rate of the node or the listener, a connection is accepted, but not
  read until it has a place. Kafka leaves it in the accept queue, which looks the same to a client. As many
  wait for a listener as its accept queue has places; more are closed.
- Over `max.connections.per.ip` it is closed at once.
- Over the creation rate of its address it is closed after up to a second, which delays the next attempt.
- On the inter-broker listener it is served over `max.connections`, too; the least recently used connection
  of another listener is closed instead.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, deque
from collections.abc import Callable, Mapping

from moldau.metadata.image import QuotaEntity
from moldau.network.connection import Connection
from moldau.network.half_open import HalfOpenConnections
from moldau.quotas.connections import NO_SETTINGS, ConnectionQuotas, ConnectionSettings
from moldau.quotas.rate import DEFAULT_WINDOWS, QuotaWindows

logger = logging.getLogger(__name__)

#: As many connections over the rate of their address are held at most; more are closed at once.
_MAX_HELD = 1000
_LOG_INTERVAL_SECONDS = 10.0


class ConnectionLimits:
    def __init__(
        self,
        settings: ConnectionSettings = NO_SETTINGS,
        *,
        windows: QuotaWindows = DEFAULT_WINDOWS,
        max_waiting: int = 50,
        max_idle_ms: int = 600_000,
    ) -> None:
        """`max_waiting` is the number of connections of a listener that may wait."""
        self.max_idle_ms = max_idle_ms
        #: The connections that are served, with their listeners. In order of arrival, as all tables here:
        #: iteration must be deterministic for the simulation.
        self.open: dict[Connection, str] = {}
        #: The connections that were served so far, by listener.
        self.served: Counter[str] = Counter()
        #: Connections whose client does not read its responses.
        self.stalled: dict[Connection, None] = {}
        self.half_open = HalfOpenConnections()
        self._quotas = ConnectionQuotas(settings, windows)
        self._max_waiting = max_waiting
        self._waiting: dict[str, _Waiting] = {}
        #: Connections over the rate of their address, until they are closed.
        self._held: dict[Connection, asyncio.TimerHandle] = {}
        self._logged_at = float("-inf")

    # For listeners.

    def admit(self, connection: Connection, listener: str) -> bool:
        """Serve a new connection, now or later; return False if it is to be closed."""
        waiting = self._waiting.get(listener)
        if waiting is None:
            waiting = self._waiting[listener] = _Waiting()
        if len(waiting.connections) > self._max_waiting:
            self._log("too many wait for the listener %s, closing that from %s", listener, connection)
            return False
        waiting.connections.append(connection)
        self._advance(listener)
        if connection in waiting.connections:
            connection.hold()
            return True
        return connection in self.open or connection in self._held

    def forget(self, connection: Connection) -> None:
        """Take out a connection that is closed; others may get its place."""
        held = self._held.pop(connection, None)
        if held is not None:
            held.cancel()
        listener = self.open.pop(connection, None)
        if listener is not None:
            self._quotas.closed(listener, connection.peer_host)
        for waiting in self._waiting.values():
            waiting.remove(connection)
        self._advance_all()

    # For the node.

    @property
    def settings(self) -> ConnectionSettings:
        return self._quotas.settings

    def update(self, settings: ConnectionSettings) -> None:
        """Apply changed limits: waiting connections may get a place, others may lose theirs."""
        self._quotas.settings = settings
        self._close_excess()
        self._advance_all()

    def apply(self, quotas: Mapping[QuotaEntity, Mapping[str, float]]) -> None:
        """Take over the quotas of the metadata; clients that are muted by an old quota continue."""
        self._quotas.apply(quotas)
        for connection in list(self.open):
            connection.end_mute()

    def unsent_bytes(self) -> int:
        """Return the size of responses buffered for clients that do not read them."""
        return sum(connection.unsent_bytes for connection in self.stalled)

    def close_idle(self, now: float) -> None:
        self.half_open.expire(now)
        if self.max_idle_ms < 0:
            return
        limit = now - self.max_idle_ms / 1000
        for connection in [c for c in self.open if c.last_activity < limit and c.idle]:
            logger.info("closing idle connection from %s (connections.max.idle.ms)", connection.peer_host)
            # A client that does not read would delay a clean close for ever.
            if connection.unsent_bytes:
                connection.abort()
            else:
                connection.close()

    # Admission.

    def _advance_all(self) -> None:
        for listener in list(self._waiting):
            self._advance(listener)

    def _advance(self, listener: str) -> None:
        """Admit the connections of a listener in order, until one must wait."""
        waiting, loop = self._waiting[listener], asyncio.get_running_loop()
        while waiting.connections:
            now = loop.time()
            if waiting.ready_at is None:
                waiting.ready_at = now + self._quotas.record(listener, int(now * 1000)) / 1000
            if now < waiting.ready_at:
                waiting.wake_at(waiting.ready_at, loop, lambda: self._advance(listener))
                return
            if not self._quotas.has_slot(listener):
                first = waiting.connections[0]
                self._log("max.connections is reached, the listener %s lets %s wait", listener, first)
                return
            self._serve(waiting.next(), listener, loop)

    def _serve(self, connection: Connection, listener: str, loop: asyncio.AbstractEventLoop) -> None:
        quotas, address = self._quotas, connection.peer_host
        throttle_ms = quotas.record_ip(listener, address, int(loop.time() * 1000))
        if throttle_ms > 0 and len(self._held) < _MAX_HELD:
            connection.hold()
            self._held[connection] = loop.call_later(throttle_ms / 1000, connection.abort)
            return
        if throttle_ms > 0 or not quotas.has_slot_for(address):
            self._log("too many connections of the listener %s, closing that from %s", listener, connection)
            connection.abort()
            return
        quotas.opened(listener, address)
        self.open[connection] = listener
        self.served[listener] += 1
        connection.release()
        self._close_excess()

    def _close_excess(self) -> None:
        excess = self._quotas.excess
        if not excess:
            return
        candidates = [each for each, listener in self.open.items() if not self._quotas.is_protected(listener)]
        candidates.sort(key=lambda connection: connection.last_activity)
        for connection in candidates[:excess]:
            host = connection.peer_host
            logger.info("closing the least recently used connection, from %s (max.connections)", host)
            self._quotas.closed(self.open.pop(connection), host)
            connection.abort()

    def _log(self, message: str, listener: str, connection: Connection) -> None:
        """Log a warning, at most every few seconds: a flood of connections must not fill the log."""
        now = asyncio.get_running_loop().time()
        if now - self._logged_at >= _LOG_INTERVAL_SECONDS:
            self._logged_at = now
            logger.warning(message, listener, connection.peer_host)


class _Waiting:
    """The connections of a listener that wait, in order of arrival. The first is recorded, the others not."""

    __slots__ = ("_timer", "connections", "ready_at")

    def __init__(self) -> None:
        self.connections: deque[Connection] = deque()
        #: When the creation rate admits the first connection; None: it is not recorded.
        self.ready_at: float | None = None
        self._timer: asyncio.TimerHandle | None = None

    def next(self) -> Connection:
        self.ready_at = None
        return self.connections.popleft()

    def remove(self, connection: Connection) -> None:
        if connection not in self.connections:
            return
        if connection is self.connections[0]:
            self.ready_at = None
        self.connections.remove(connection)

    def wake_at(self, when: float, loop: asyncio.AbstractEventLoop, wake: Callable[[], None]) -> None:
        if self._timer is None:
            self._timer = loop.call_at(when, self._wake, wake)

    def _wake(self, wake: Callable[[], None]) -> None:
        self._timer = None
        # The timer may be early by its resolution.
        if self.ready_at is not None:
            self.ready_at = min(self.ready_at, asyncio.get_running_loop().time())
        wake()
