"""The slices of a scrape: it yields to other tasks, and measures the time of the event loop that it takes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from moldau.base.clock import Clock
from moldau.base.loop_slice import SLICE_SECONDS


class ScrapeSlice:
    """As `LoopSlice`, with the sum of the slices."""

    __slots__ = ("_busy", "_clock", "_started")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._busy = 0.0
        self._started = clock.monotonic()

    @property
    def busy_seconds(self) -> float:
        return self._busy + self._clock.monotonic() - self._started

    async def pause(self) -> None:
        if self._clock.monotonic() - self._started > SLICE_SECONDS:
            async with self.waiting():
                await asyncio.sleep(0)

    @asynccontextmanager
    async def waiting(self) -> AsyncIterator[None]:
        """Do not count the time that the scrape waits for other nodes."""
        self._busy += self._clock.monotonic() - self._started
        yield
        self._started = self._clock.monotonic()
