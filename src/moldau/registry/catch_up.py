"""Reads of an instance that does not lead: it catches up with the topic before it answers.

The leader may have acknowledged a write that this instance has not replayed yet. A request that arrives now
must see it, so the end of the topic is requested after its arrival. Requests that arrive while the end is
being requested share the next request: under load, one request to Kafka serves many of ours.

If Kafka does not answer in time, the instance answers from what it has, as Confluent's does, and does not ask
again for a while: reads stay available without Kafka.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from moldau.base.errors import KafkaError
from moldau.base.json_log import event

logger = logging.getLogger(__name__)

_TIMEOUT_S: Final = 1.0
_PAUSE_S: Final = 10.0


class CatchUp:
    def __init__(self, read_to_end: Callable[[], Awaitable[None]]) -> None:
        self._read_to_end = read_to_end
        self._running: asyncio.Task[None] | None = None
        self._next: asyncio.Task[None] | None = None
        self._paused_until = float("-inf")

    async def __call__(self) -> None:
        """Return once all records that were in the topic at the time of the call have been replayed."""
        if asyncio.get_running_loop().time() < self._paused_until:
            return
        if self._next is None:
            self._next = asyncio.create_task(self._run_after(self._running))
        await asyncio.shield(self._next)

    async def close(self) -> None:
        tasks = [task for task in (self._running, self._next) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _run_after(self, previous: asyncio.Task[None] | None) -> None:
        if previous is not None and not previous.done():
            await asyncio.wait([previous])
        self._running, self._next = self._next, None
        try:
            await asyncio.wait_for(self._read_to_end(), _TIMEOUT_S)
        except (KafkaError, TimeoutError) as error:
            logger.warning(
                "The end of the topic is not known, answers may be out of date: %r",
                error,
                extra=event("registry.not_current"),
            )
            self._paused_until = asyncio.get_running_loop().time() + _PAUSE_S
