"""Time as an argument: components receive a `Clock`, so that tests control the time."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    def time_ms(self) -> int:
        """Wall-clock milliseconds since 1970: timestamps in records and files."""
        ...

    def time_ns(self) -> int:
        """Wall-clock nanoseconds since 1970: spans of traces."""
        ...

    def monotonic(self) -> float:
        """Monotonic seconds: durations and deadlines."""
        ...


class SystemClock:
    def time_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def time_ns(self) -> int:
        return time.time_ns()

    def monotonic(self) -> float:
        return time.monotonic()


class ManualClock:
    """A clock for tests that advances only on request."""

    def __init__(self, time_ms: int = 1_700_000_000_000) -> None:
        self._time_ms = time_ms
        self._monotonic = 1000.0

    def time_ms(self) -> int:
        return self._time_ms

    def time_ns(self) -> int:
        return self.time_ms() * 1_000_000

    def monotonic(self) -> float:
        return self._monotonic

    def advance(self, milliseconds: int) -> None:
        self._time_ms += milliseconds
        self._monotonic += milliseconds / 1000
