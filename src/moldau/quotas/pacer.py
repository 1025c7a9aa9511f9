"""What a client has used of a limit per second, and how long to throttle it.

While the rate over the sampled windows is within the limit, as Kafka measures it, the client is free: after a
pause it may use the limit of all but one window at once. A request that exceeds the rate is throttled as by
Kafka, and the client is paced from then on: its balance grows with the limit, a use is subtracted, and it is
throttled while the balance is negative. It is free again when it has left a window's worth unused.

Until the burst has left the windows, a use counts several times, so the client continues with a part of its
limit: with the default windows it gets at most about 1.25 times the limit in the ten seconds of a burst, and
its limit afterwards. Kafka throttles by the rate alone. A window ends as a whole, so the rate of a client
that always has data varies between a tenth and 1.6 times its limit from one ten seconds to the next.
"""

from __future__ import annotations

import math
from typing import Final

from moldau.quotas.rate import QuotaWindows, Rate

#: How often a use counts after a burst.
_AFTER_BURST: Final = 5


class Pacer:
    __slots__ = ("_balance", "_burst_ends_ms", "_prepaid", "_rate", "_updated_ms", "_windows")

    def __init__(self, windows: QuotaWindows) -> None:
        self._windows = windows
        self._rate = Rate(windows)
        #: None while the client is free.
        self._balance: float | None = None
        #: Until then a use counts several times.
        self._burst_ends_ms = 0
        #: What the client is throttled for before it uses it.
        self._prepaid = 0.0
        self._updated_ms = 0

    def record(self, value: float, limit: float, now_ms: int) -> int:
        """Record what the client has used; return how long to throttle it, in milliseconds."""
        self._rate.record(value, now_ms)
        balance = self._refilled(limit, now_ms)
        if balance is not None:
            balance -= max(0.0, value - self._prepaid)
            self._prepaid = 0.0
            self._balance = balance - self._extra(value, balance, limit, now_ms)
        elif self._rate.unused(limit, now_ms) < 0:
            self._pace(0, limit, now_ms)
        return self.throttle_ms(limit, now_ms)

    def record_if_within(self, value: float, limit: float, now_ms: int) -> int:
        """Record what the client would use, unless it must be throttled first; return the throttle time."""
        if self._refilled(limit, now_ms) is None and self._rate.unused(limit, now_ms) < value:
            # More than a burst would never be within the rate; it is delivered when a burst is.
            self._pace(min(value, self.burst(limit, now_ms)), limit, now_ms)
        throttle_ms = self.throttle_ms(limit, now_ms)
        if throttle_ms == 0:
            self.record(value, limit, now_ms)
        return throttle_ms

    def throttle_ms(self, limit: float, now_ms: int) -> int:
        """Return how long to throttle the client for what it has used so far."""
        balance = self._refilled(limit, now_ms)
        return 0 if balance is None or balance >= 0 else math.ceil(-balance / limit * 1000)

    def rate(self, now_ms: int) -> float:
        """Return what the client uses per second."""
        return self._rate.measure(now_ms)

    def burst(self, limit: float, now_ms: int) -> float:
        """Return how much the client may use at once without being throttled before the next time."""
        window = self._window_worth(limit)
        if self._refilled(limit, now_ms) is None:
            return (self._windows.number - 1) * window
        return window / _AFTER_BURST if now_ms < self._burst_ends_ms else window

    def _pace(self, value: float, limit: float, now_ms: int) -> None:
        """Begin to pace a client that has exceeded the rate, or would with this value."""
        self._balance = self._rate.unused(limit, now_ms) - value
        self._prepaid = value
        self._burst_ends_ms = self._rate.burst_ends_ms(limit, now_ms)
        self._updated_ms = now_ms

    def _extra(self, value: float, balance: float, limit: float, now_ms: int) -> float:
        """Return by how much more a use counts; at most, the client waits for the end of the burst."""
        until_end = limit * (self._burst_ends_ms - now_ms) / 1000
        return max(0.0, min((_AFTER_BURST - 1) * value, until_end + balance))

    def _refilled(self, limit: float, now_ms: int) -> float | None:
        if self._balance is None:
            return None
        self._balance += limit * (now_ms - self._updated_ms) / 1000
        self._updated_ms = now_ms
        if self._balance >= self._window_worth(limit):
            self._balance = None
        return self._balance

    def _window_worth(self, limit: float) -> float:
        return limit * self._windows.size_ms / 1000
