"""The slices of a scrape: it yields to other tasks, and measures the processor time that it takes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from moldau.base.loop_slice import SLICE_SECONDS


class ScrapeSlice:
    """As `LoopSlice`, with the processor time of the event loop's thread in all slices."""

    __slots__ = ("_busy", "_started", "_used")

    def __init__(self) -> None:
        self._busy = 0.0
        self._begin()

    @property
    def busy_seconds(self) -> float:
        return self._busy + time.thread_time() - self._used

    async def pause(self) -> None:
        if time.monotonic() - self._started > SLICE_SECONDS:
            async with self.waiting():
                await asyncio.sleep(0)

    @asynccontextmanager
    async def waiting(self) -> AsyncIterator[None]:
        """Do not count what other tasks do while the scrape waits."""
        self._busy += time.thread_time() - self._used
        yield
        self._begin()

    def _begin(self) -> None:
        self._started = time.monotonic()
        self._used = time.thread_time()
