"""Throttling of clients that exceed a quota (KIP-13, KIP-124, KIP-219).

A request is measured by its size (Produce), its response (Fetch, by its handler) and the time that the event
loop spends on it. The response carries the longest throttle time and is sent at once; afterwards the
connection is muted for that time.

`request_percentage` is the share of the time of one thread, as in Kafka. Kafka has `num.network.threads` and
`num.io.threads` of them; a node has one event loop, so 100 is all of it. The time of a request consists of
decoding, the steps of its handler on the event loop, and of writing the previous response; reading from disk
in the thread pool does not count.

Requests between brokers are exempt, as are those on controller listeners: a quota limits clients, not
replication.
"""

from __future__ import annotations

import types
from collections.abc import Awaitable, Coroutine, Generator
from typing import Any, Final

from moldau.base.clock import Clock, SystemClock
from moldau.network.connection import Connection
from moldau.protocol.api_keys import ApiKey
from moldau.protocol.messages.fetch import FetchRequest
from moldau.protocol.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from moldau.protocol.schema import Message
from moldau.quotas.client_quotas import ClientQuotas
from moldau.security.acl.permissions import CLUSTER_ACTION
from moldau.server.dispatch.context import RequestContext

#: APIs that only brokers use.
_BETWEEN_BROKERS = frozenset(
    {
        ApiKey.WRITE_TXN_MARKERS,
        ApiKey.INITIALIZE_SHARE_GROUP_STATE,
        ApiKey.READ_SHARE_GROUP_STATE,
        ApiKey.READ_SHARE_GROUP_STATE_SUMMARY,
        ApiKey.WRITE_SHARE_GROUP_STATE,
        ApiKey.DELETE_SHARE_GROUP_STATE,
    }
)
#: Brokers verify transactions with batched requests, clients use older versions.
_BATCHED_SINCE = 4
_PERCENT = 100.0


class Throttle:
    """Measures the requests of a listener."""

    def __init__(self, quotas: ClientQuotas, clock: Clock) -> None:
        self.quotas = quotas
        self._clock = clock

    def begin(self, connection: Connection, frame_size: int) -> RequestMeter:
        """Begin to measure a request; its header is not decoded yet."""
        return RequestMeter(self.quotas, self._clock, connection, frame_size)


class RequestMeter:
    """One request, from its frame to its response."""

    __slots__ = (
        "_begin",
        "_clock",
        "_connection",
        "_context",
        "_quotas",
        "_request_size",
        "_seconds",
        "_throttle_ms",
    )

    def __init__(self, quotas: ClientQuotas, clock: Clock, connection: Connection, request_size: int) -> None:
        self._quotas = quotas
        self._clock = clock
        self._connection = connection
        self._request_size = request_size
        self._context: RequestContext | None = None
        self._seconds = 0.0
        if quotas.request.enabled:
            self._seconds = connection.take_write_seconds(clock.monotonic)
        self._throttle_ms = 0
        self._begin = clock.monotonic()

    def decoded(self, context: RequestContext, request: Message) -> bool:
        """Return whether quotas apply to the request; a Produce is charged for its size, and muted, at once.

        Produce requests may overlap, so the next one must not be dispatched before this one is answered.
        """
        if is_exempt(context, request):
            return False
        self._context = context
        if context.api_key == ApiKey.PRODUCE and self._quotas.produce.enabled:
            self._throttle_ms = self._quotas.produce.record(
                context.principal.name, context.client_id, self._request_size, self._now_ms()
            )
            self._mute()
        return True

    def handled(self) -> None:
        """Count the time until now."""
        self._seconds += self._clock.monotonic() - self._begin

    def measured(self, handler: Awaitable[Message | None]) -> Awaitable[Message | None]:
        """Return an awaitable that counts the time of a handler on the event loop."""
        if self._quotas.request.enabled and isinstance(handler, Coroutine):
            return self._steps(handler)
        return handler

    @types.coroutine
    def _steps(self, handler: Coroutine[Any, Any, Any]) -> Generator[Any, Any, Any]:
        """Run the handler and count the time of its steps, without the time that it waits."""
        value: Any = None
        error: BaseException | None = None
        while True:
            self._begin = self._clock.monotonic()
            try:
                awaited = handler.send(value) if error is None else handler.throw(error)
            except StopIteration as stop:
                return stop.value
            finally:
                self.handled()
            value = error = None
            try:
                value = yield awaited
            except BaseException as thrown:  # noqa: BLE001  passed to the handler
                error = thrown

    def answered(self, response: Message | None) -> None:
        """Set the throttle time of a response and mute the connection; None is the end of an acks=0 produce.

        A handler or a controller that applies a quota of its own has set the throttle time already.
        """
        if response is None:
            return
        throttled: Any = response
        by_handler = getattr(throttled, "throttle_time_ms", None)
        self._throttle_ms = max(self._throttle_ms, by_handler or 0, self._request_ms())
        if by_handler is not None:
            throttled.throttle_time_ms = self._throttle_ms
        self._mute()

    def _request_ms(self) -> int:
        context = self._context
        if context is None or not self._quotas.request.enabled:
            return 0
        return self._quotas.request.record(
            context.principal.name, context.client_id, self._seconds * _PERCENT, self._now_ms()
        )

    def _mute(self) -> None:
        if self._throttle_ms > 0:
            self._connection.mute(self._throttle_ms)

    def _now_ms(self) -> int:
        return int(self._clock.monotonic() * 1000)


#: Of a listener to which no quotas apply.
UNLIMITED: Final = Throttle(ClientQuotas(), SystemClock())


def is_exempt(context: RequestContext, request: Message) -> bool:
    """Return whether the request comes from another broker, and not from a client that imitates one."""
    return _is_between_brokers(context, request) and context.allows(CLUSTER_ACTION, log_denied=False)


def _is_between_brokers(context: RequestContext, request: Message) -> bool:
    if isinstance(request, FetchRequest):
        return request.replica_id >= 0 or request.replica_state.replica_id >= 0
    if isinstance(request, OffsetForLeaderEpochRequest):
        return request.replica_id >= 0
    if context.api_key == ApiKey.ADD_PARTITIONS_TO_TXN:
        return context.api_version >= _BATCHED_SINCE
    return context.api_key in _BETWEEN_BROKERS
