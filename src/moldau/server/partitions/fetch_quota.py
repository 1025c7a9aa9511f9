"""The quota of a consumer's fetch: how much it may return, and whether it is answered empty.

A response that exceeds `consumer_byte_rate` is replaced by an empty one and not counted, and so is the
response to a client that exceeds `request_percentage`. A response is not larger than what the client may
consume at once, so that the client is not throttled for long.

A share group's member is throttled before it acquires records: those of a response that is replaced would be
locked until their acquisition expires.
"""

from __future__ import annotations

from moldau.base.clock import Clock
from moldau.quotas.client_quotas import ClientQuotas
from moldau.server.dispatch.context import RequestContext

#: The size of a response without records, about: of the frame and of each partition.
_FRAME_BYTES = 30
_PARTITION_BYTES = 50
_NO_LIMIT = 2**31 - 1


class FetchQuota:
    """The quotas of one request."""

    __slots__ = ("_client_id", "_clock", "_quotas", "_user")

    def __init__(self, quotas: ClientQuotas, clock: Clock, context: RequestContext) -> None:
        self._quotas = quotas
        self._clock = clock
        self._user = context.principal.name
        self._client_id = context.client_id

    def max_bytes(self) -> int:
        """Return how many bytes the response may have."""
        limit = self._quotas.fetch.burst(self._user, self._client_id, self._now_ms())
        return _NO_LIMIT if limit is None else limit

    def record_if_within(self, records_bytes: int, partitions: int) -> int:
        """Count a response; if it must be empty instead, return how long to throttle the client."""
        now_ms, quotas = self._now_ms(), self._quotas
        throttle_ms = quotas.request.throttle_ms(self._user, self._client_id, now_ms)
        if throttle_ms > 0:
            return throttle_ms
        size = _response_bytes(records_bytes, partitions)
        return quotas.fetch.record_if_within(self._user, self._client_id, size, now_ms)

    def throttle_ms(self) -> int:
        """Return how long to throttle the client before it may fetch."""
        now_ms, quotas = self._now_ms(), self._quotas
        return max(
            quotas.request.throttle_ms(self._user, self._client_id, now_ms),
            quotas.fetch.throttle_ms(self._user, self._client_id, now_ms),
        )

    def record(self, records_bytes: int, partitions: int) -> int:
        """Count a response that is sent in any case; return how long to throttle the client afterwards."""
        size = _response_bytes(records_bytes, partitions)
        return self._quotas.fetch.record(self._user, self._client_id, size, self._now_ms())

    def _now_ms(self) -> int:
        return int(self._clock.monotonic() * 1000)


def _response_bytes(records_bytes: int, partitions: int) -> int:
    return records_bytes + _FRAME_BYTES + partitions * _PARTITION_BYTES
