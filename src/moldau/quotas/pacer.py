"""What a client has used of a limit per second, and how long to throttle it.

While the rate over the sampled windows is within the limit, as Kafka measures it, the client is free: after a
pause it may use the limit of all but one window at once. A client that exceeds the rate is paced: its balance
begins with what it was allowed to use since its oldest window, less what it has used, and grows with the
limit. It is throttled while the balance is negative, and free again when it has left a window's worth unused.

Kafka throttles by the rate alone. A window ends as a whole, so the rate of a client that always has data
varies between a tenth and 1.6 times its limit from one ten seconds to the next. A paced client gets its
limit.
"""

from __future__ import annotations

import math

from moldau.quotas.rate import QuotaWindows, Rate


class Pacer:
    __slots__ = ("_balance", "_rate", "_updated_ms", "_windows")

    def __init__(self, windows: QuotaWindows) -> None:
        self._windows = windows
        self._rate = Rate(windows)
        #: None while the client is free.
        self._balance: float | None = None
        self._updated_ms = 0

    def record(self, value: float, limit: float, now_ms: int) -> int:
        """Record what the client has used; return how long to throttle it, in milliseconds."""
        self._rate.record(value, now_ms)
        balance = self._refilled(limit, now_ms)
        if balance is not None:
            self._balance = balance - value
        else:
            # Half of the next such request counts, so that large requests exceed the limit by half at most.
            next_half = min(value, self._window_worth(limit)) / 2
            if self._rate.would_exceed(limit, next_half, now_ms):
                self._pace(limit, now_ms)
        return self.throttle_ms(limit, now_ms)

    def record_if_within(self, value: float, limit: float, now_ms: int) -> int:
        """Record what the client would use, unless it must be throttled first; return the throttle time."""
        if self._refilled(limit, now_ms) is None and self._rate.would_exceed(limit, value, now_ms):
            self._pace(limit, now_ms)
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
        windows = self._windows.number - 1 if self._refilled(limit, now_ms) is None else 1
        return windows * self._window_worth(limit)

    def _pace(self, limit: float, now_ms: int) -> None:
        self._balance = limit * self._rate.elapsed_ms(now_ms) / 1000 - self._rate.total(now_ms)
        self._updated_ms = now_ms

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
