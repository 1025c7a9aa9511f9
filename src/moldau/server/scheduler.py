"""Work that comes round again and again; a job that fails is logged and comes round again."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

log = logging.getLogger(__name__)


class Scheduler:
    def __init__(self) -> None:
        self._tasks: list[asyncio.Task[None]] = []

    def every(
        self, interval_ms: int, work: Callable[[], Awaitable[object] | None], *, first_ms: int | None = None
    ) -> None:
        """Run `work` every `interval_ms` of loop time, the first time after `first_ms`."""
        delay = (interval_ms if first_ms is None else first_ms) / 1000
        self._tasks.append(asyncio.create_task(self._run(delay, interval_ms / 1000, work)))

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()

    async def _run(self, delay: float, interval: float, work: Callable[[], Awaitable[object] | None]) -> None:
        # A deadline far away would overflow the loop's timer; a day is as good as never.
        await asyncio.sleep(min(delay, 86_400.0))
        while True:
            try:
                result = work()
                if result is not None:
                    await result
            except Exception:
                log.exception("background work failed; it will be tried again")
            await asyncio.sleep(min(max(interval, 0.001), 86_400.0))
