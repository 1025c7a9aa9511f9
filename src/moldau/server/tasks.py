"""Tasks of a node: background tasks that run once, periodic tasks that run at intervals.

A failure is logged; a periodic task runs again at its next interval. Tasks that still run when the node stops
are cancelled.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

logger = logging.getLogger(__name__)

Interval = int | Callable[[], int]
_DAY_MS = 86_400_000


class BackgroundTasks:
    """Tasks whose result is not awaited."""

    def __init__(self) -> None:
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._closed = False

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        if self._closed:
            # The last connections close after the tasks; a task they start would outlive the node.
            work.close()
            return
        task = asyncio.create_task(work)
        self._tasks[task] = None
        task.add_done_callback(self._ended)

    async def close(self) -> None:
        """Cancel the tasks: some may be waiting for a controller."""
        self._closed = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.pop(task, None)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            logger.error("background task failed: %s", error, exc_info=error)


class Scheduler:
    """Tasks that run at intervals."""

    def __init__(self) -> None:
        self._tasks: list[asyncio.Task[None]] = []

    def every(
        self,
        interval_ms: Interval,
        work: Callable[[], Awaitable[object] | None],
        *,
        first_ms: int | None = None,
    ) -> None:
        """Run `work` every `interval_ms` (evaluated before each run), for the first time after `first_ms`."""
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
                logger.exception("periodic task failed; it runs again at its next interval")
            await _sleep(max(interval_ms(), 1))


async def _sleep(milliseconds: int) -> None:
    # The event loop's timers overflow with very long delays; a day is long enough.
    await asyncio.sleep(min(milliseconds, _DAY_MS) / 1000)
