"""`controller_mutation_rate` (KIP-599): partitions that a client creates or deletes per second.

Versions of the requests that know THROTTLING_QUOTA_EXCEEDED are strict: while the quota is exhausted, no
change is accepted. Older versions are permissive: the change is accepted and the client throttled.
"""

from __future__ import annotations

from moldau.base.errors import ErrorCode, KafkaError
from moldau.quotas.rate import QuotaWindows
from moldau.quotas.sensors import Sensor, Sensors
from moldau.quotas.token_bucket import TokenBucket


class MutationQuota:
    def __init__(self, windows: QuotaWindows) -> None:
        self.sensors: Sensors[TokenBucket] = Sensors("controller_mutation_rate", lambda: TokenBucket(windows))

    def request(self, user: str, client_id: str | None, *, strict: bool, now_ms: int) -> MutationRequest:
        """Return the quota of one request."""
        return MutationRequest(self.sensors.of(user, client_id, now_ms), strict)


class MutationRequest:
    """The quota of one request, charged once for each of its topics."""

    __slots__ = ("_charged_ms", "_sensor", "_strict", "_throttle_ms")

    def __init__(self, sensor: Sensor[TokenBucket] | None, strict: bool) -> None:
        self._sensor = sensor
        self._strict = strict
        self._throttle_ms = 0
        self._charged_ms = 0

    def charge(self, partitions: int, now_ms: int) -> None:
        """Record a change of this many partitions; a strict quota that is exhausted refuses it."""
        sensor = self._sensor
        if sensor is None:
            return
        bucket, limit = sensor.used, sensor.limit
        exhausted = bucket.tokens(limit, now_ms) < 0
        if self._strict and exhausted:
            self._throttle(bucket.throttle_ms(limit, now_ms), now_ms)
            raise KafkaError(ErrorCode.THROTTLING_QUOTA_EXCEEDED)
        bucket.take(partitions, limit, now_ms)
        if not self._strict:
            self._throttle(bucket.throttle_ms(limit, now_ms), now_ms)

    def _throttle(self, throttle_ms: int, now_ms: int) -> None:
        self._throttle_ms, self._charged_ms = throttle_ms, now_ms

    def throttle_ms(self, now_ms: int) -> int:
        """Return how long to throttle the client, less the time since the change."""
        return max(0, self._throttle_ms - (now_ms - self._charged_ms))
