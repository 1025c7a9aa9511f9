"""A limit of bytes per second over all segments that this broker copies, or reads from the remote store."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from moldau.base.clock import Clock
from moldau.quotas.rate import QuotaWindows, Rate

_UNLIMITED = 2**63 - 1
_CHECK_SECONDS = 1.0


class RemoteQuota:
    def __init__(self, clock: Clock, windows: QuotaWindows, limit: Callable[[], int]) -> None:
        self._clock = clock
        self._limit = limit
        self._rate = Rate(windows)
        #: How long callers were throttled in total.
        self.throttled_ms = 0

    def throttle_ms(self) -> int:
        """Return how long to wait before more bytes are allowed."""
        limit = self._limit()
        return 0 if limit >= _UNLIMITED else self._rate.throttle_ms(limit, self._now_ms())

    def record(self, size: int) -> None:
        if self._limit() < _UNLIMITED:
            self._rate.record(size, self._now_ms())

    async def wait(self) -> None:
        """Wait until more bytes are allowed."""
        while (throttle_ms := self.throttle_ms()) > 0:
            seconds = min(throttle_ms / 1000, _CHECK_SECONDS)
            self.throttled_ms += round(seconds * 1000)
            await asyncio.sleep(seconds)

    def _now_ms(self) -> int:
        return int(self._clock.monotonic() * 1000)
