"""A bound on how many tasks do something at the same time, which may change while they run."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable


class Slots:
    """An asynchronous context manager; tasks get their turn in the order in which they asked."""

    def __init__(self, limit: Callable[[], int]) -> None:
        self._limit = limit
        self._taken = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def __aenter__(self) -> None:
        if self._taken < self._limit() and not self._waiting:
            self._taken += 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._taken -= 1
                self.wake()
            raise

    async def __aexit__(self, *_error: object) -> None:
        self._taken -= 1
        self.wake()

    def wake(self) -> None:
        """Let tasks continue: a slot is free, or the bound has been raised."""
        while self._waiting and self._taken < self._limit():
            turn = self._waiting.popleft()
            if not turn.done():
                self._taken += 1
                turn.set_result(None)
