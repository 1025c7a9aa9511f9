"""Work that comes round again and again; a job that fails is logged and comes round again."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

log = logging.getLogger(__name__)

Interval = int | Callable[[], int]
_DAY_MS = 86_400_000


class Scheduler:
    def __init__(self) -> None:
        self._tasks: list[asyncio.Task[None]] = []

    def every(
        self,
        interval_ms: Interval,
        work: Callable[[], Awaitable[object] | None],
        *,
        first_ms: int | None = None,
    ) -> None:
        """Run `work` every `interval_ms` of loop time (asked again each time), first after `first_ms`."""
        interval = interval_ms if callable(interval_ms) else lambda: interval_ms
        delay = interval() if first_ms is None else first_ms
        self._tasks.append(asyncio.create_task(self._run(delay, interval, work)))

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()

    async def _run(
        self, delay_ms: int, interval_ms: Callable[[], int], work: Callable[[], Awaitable[object] | None]
    ) -> None:
        await _sleep(delay_ms)
        while True:
            try:
                result = work()
                if result is not None:
                    await result
            except Exception:
                log.exception("background work failed; it will be tried again")
            await _sleep(max(interval_ms(), 1))


async def _sleep(milliseconds: int) -> None:
    # A deadline far away would overflow the loop's timer; a day is as good as never.
    await asyncio.sleep(min(milliseconds, _DAY_MS) / 1000)
