"""Work that nobody waits for; a failure is logged, and what is left when the node stops is given up."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

log = logging.getLogger(__name__)


class Background:
    def __init__(self) -> None:
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._closed = False

    def begin(self, work: Coroutine[Any, Any, None]) -> None:
        if self._closed:
            # The last connections break after that: what they set off would outlive the node.
            work.close()
            return
        task = asyncio.create_task(work)
        self._tasks[task] = None
        task.add_done_callback(self._ended)

    async def close(self) -> None:
        """Some of it may wait for a controller that never comes."""
        self._closed = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.pop(task, None)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            log.error("background work failed: %s", error, exc_info=error)
