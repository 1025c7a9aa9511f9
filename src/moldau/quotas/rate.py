"""The rate of a quantity over sampled windows, as Kafka measures client quotas.

Values are summed in windows of `size_ms`; a window begins with the first value after the previous one ended.
The rate is the sum of all windows divided by the time since the oldest began, but at least by `number - 1`
windows: a client that was idle may therefore use the limit of that time at once. A window is dropped when its
last value is older than `number` windows; one more is kept, because it may overlap the measured time.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple


class QuotaWindows(NamedTuple):
    """`quota.window.num` and `quota.window.size.seconds`."""

    number: int = 11
    size_ms: int = 1000


DEFAULT_WINDOWS: Final = QuotaWindows()
#: Steady use of a limit is no burst, though requests do not arrive evenly.
_TOLERANCE: Final = 1.05


class _Window:
    __slots__ = ("last_ms", "start_ms", "value")

    def __init__(self, now_ms: int) -> None:
        self.begin(now_ms)

    def begin(self, now_ms: int) -> None:
        self.start_ms = self.last_ms = now_ms
        self.value = 0.0


class Rate:
    __slots__ = ("_current", "_kept", "_windows")

    def __init__(self, windows: QuotaWindows) -> None:
        self._windows = windows
        self._kept: list[_Window] = []
        self._current = 0

    def record(self, value: float, now_ms: int) -> None:
        """Add a value; a negative one takes back what was recorded."""
        if not self._kept:
            self._kept.append(_Window(now_ms))
        window = self._kept[self._current]
        if now_ms - window.start_ms >= self._windows.size_ms:
            window = self._next(now_ms)
        window.value += value
        window.last_ms = now_ms

    def _next(self, now_ms: int) -> _Window:
        self._current = (self._current + 1) % (self._windows.number + 1)
        if self._current == len(self._kept):
            self._kept.append(_Window(now_ms))
        else:
            self._kept[self._current].begin(now_ms)
        return self._kept[self._current]

    def total(self, now_ms: int) -> float:
        """Return the sum of the windows, without those that are too old."""
        expiry_ms = self._windows.number * self._windows.size_ms
        total = 0.0
        for window in self._kept:
            if now_ms - window.last_ms >= expiry_ms:
                window.begin(now_ms)
            total += window.value
        return total

    def throttle_ms(self, limit: float, now_ms: int) -> int:
        """Return how long to wait until the rate is within a limit per second, if nothing is added."""
        total = self.total(now_ms)
        span_ms = self._span_ms(now_ms)
        rate = total * 1000 / span_ms
        if rate <= limit:
            return 0
        return round((rate - limit) / limit * span_ms)

    def measure(self, now_ms: int) -> float:
        """Return the rate per second."""
        return self.total(now_ms) * 1000 / self._span_ms(now_ms)

    def unused(self, limit: float, now_ms: int) -> float:
        """Return how much can be added without exceeding a limit per second; below 0, it is exceeded."""
        return limit * self._span_ms(now_ms) / 1000 - self.total(now_ms)

    def burst_ends_ms(self, limit: float, now_ms: int) -> int:
        """Return from when on the limit can be used without exceeding it together with earlier values.

        This is about the time of all windows after a burst, and now after steady use.
        """
        number, size_ms = self._windows
        measured_ms = (number - 1) * size_ms
        allowed = limit * measured_ms / 1000 * _TOLERANCE
        ends_ms, used = float(now_ms), 0.0
        for window in sorted(self._kept, key=lambda each: each.start_ms, reverse=True):
            used += window.value
            # Just before it leaves the measured time, it counts together with all later ones.
            leaves_ms = window.start_ms + measured_ms
            ends_ms = max(ends_ms, leaves_ms - max(0.0, (allowed - used) / limit * 1000))
        return math.ceil(ends_ms)

    def _span_ms(self, now_ms: int) -> int:
        number, size_ms = self._windows
        elapsed_ms = now_ms - min((window.start_ms for window in self._kept), default=now_ms)
        missing = number - 1 - elapsed_ms // size_ms
        if missing > 0:
            elapsed_ms += missing * size_ms
        return max(elapsed_ms, 1)
