"""Producer ids, handed out one by one from blocks that the controller allocates and records."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable

from moldau.base.errors import ErrorCode, KafkaError


class ProducerIds:
    def __init__(self, allocate: Callable[[], Awaitable[range]]) -> None:
        self._allocate = allocate
        self._block: deque[int] = deque()
        self._lock = asyncio.Lock()

    async def next(self) -> int:
        """An id nobody else has or will get; what is left of a block is lost with the process."""
        await self.ready()
        return self.take()

    async def ready(self) -> None:
        """Come back when there is an id that `take` can give, which holds until something else is awaited."""
        async with self._lock:
            if not self._block:
                self._block.extend(await self._allocate())

    def take(self) -> int:
        """An id at once; without one at hand, whoever asked is to try again."""
        if not self._block:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "there is no producer id at hand")
        return self._block.popleft()
