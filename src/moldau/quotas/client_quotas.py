"""The quotas of clients on a node: bytes produced and consumed, request time, changes by the controller.

Each returns a throttle time in milliseconds; the caller answers at once and then mutes the connection
(KIP-219). Time is an argument, in milliseconds of a monotonic clock.
"""

from __future__ import annotations

from collections.abc import Mapping

from moldau.metadata.image import QuotaEntity
from moldau.quotas.mutations import MutationQuota
from moldau.quotas.pacer import Pacer
from moldau.quotas.rate import DEFAULT_WINDOWS, QuotaWindows
from moldau.quotas.sensors import Sensors
from moldau.quotas.token_bucket import TokenBucket


class RateQuota:
    """A limit on a rate per second."""

    def __init__(self, key: str, windows: QuotaWindows, max_throttle_ms: int | None = None) -> None:
        """`max_throttle_ms` limits the throttle time of one request."""
        self._max_throttle_ms = max_throttle_ms
        self.sensors: Sensors[Pacer] = Sensors(key, lambda: Pacer(windows))

    @property
    def enabled(self) -> bool:
        return self.sensors.enabled

    def record(self, user: str, client_id: str | None, value: float, now_ms: int) -> int:
        """Record what a client has used; return how long to throttle it."""
        sensor = self.sensors.of(user, client_id, now_ms)
        return 0 if sensor is None else self._bounded(sensor.used.record(value, sensor.limit, now_ms))

    def record_if_within(self, user: str, client_id: str | None, value: float, now_ms: int) -> int:
        """Record what a client would use, unless it must be throttled first; return the throttle time."""
        sensor = self.sensors.of(user, client_id, now_ms)
        if sensor is None:
            return 0
        return self._bounded(sensor.used.record_if_within(value, sensor.limit, now_ms))

    def throttle_ms(self, user: str, client_id: str | None, now_ms: int) -> int:
        """Return how long to throttle a client for what it has used so far."""
        sensor = self.sensors.of(user, client_id, now_ms)
        return 0 if sensor is None else self._bounded(sensor.used.throttle_ms(sensor.limit, now_ms))

    def burst(self, user: str, client_id: str | None, now_ms: int) -> int | None:
        """Return how much a client may use at once; None if it is not limited."""
        sensor = self.sensors.of(user, client_id, now_ms)
        return None if sensor is None else int(sensor.used.burst(sensor.limit, now_ms))

    def _bounded(self, throttle_ms: int) -> int:
        return throttle_ms if self._max_throttle_ms is None else min(throttle_ms, self._max_throttle_ms)


class ClientQuotas:
    def __init__(
        self,
        windows: QuotaWindows = DEFAULT_WINDOWS,
        controller_windows: QuotaWindows = DEFAULT_WINDOWS,
    ) -> None:
        self.produce = RateQuota("producer_byte_rate", windows)
        self.fetch = RateQuota("consumer_byte_rate", windows)
        #: In percent of the time of one thread.
        self.request = RateQuota("request_percentage", windows, max_throttle_ms=windows.size_ms)
        self.mutations = MutationQuota(controller_windows)
        #: Whether any quota is set, the only check that a node without quotas pays for a request.
        self.active = False

    def apply(self, quotas: Mapping[QuotaEntity, Mapping[str, float]]) -> None:
        """Take over the quotas of the metadata."""
        for sensors in self._all_sensors():
            sensors.apply(quotas)
        self.active = any(sensors.enabled for sensors in self._all_sensors())

    def expire(self, now_ms: int) -> None:
        """Forget clients that were not seen for an hour."""
        for sensors in self._all_sensors():
            sensors.expire(now_ms)

    def _all_sensors(self) -> tuple[Sensors[Pacer] | Sensors[TokenBucket], ...]:
        return self.produce.sensors, self.fetch.sensors, self.request.sensors, self.mutations.sensors
