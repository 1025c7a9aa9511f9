"""Producer ids, handed out one by one from blocks that the controller allocates and records."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable


class ProducerIds:
    def __init__(self, allocate: Callable[[], Awaitable[range]]) -> None:
        self._allocate = allocate
        self._block = iter(range(0))
        self._lock = asyncio.Lock()

    async def next(self) -> int:
        """An id nobody else has or will get; what is left of a block is lost with the process."""
        async with self._lock:
            for producer_id in self._block:
                return producer_id
            self._block = iter(await self._allocate())
            return next(self._block)
