"""How many requests of a kind run at a time; more of them wait, but not for long."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from moldau.console.web.call import Refused


class Places:
    def __init__(self, most: int, what: str, wait_s: float) -> None:
        self._most = most
        self._what = what
        self._wait_s = wait_s
        self._free = asyncio.Semaphore(most)

    @asynccontextmanager
    async def one(self) -> AsyncIterator[None]:
        """Take a place; `Refused` if none is free in time."""
        try:
            async with asyncio.timeout(self._wait_s):
                await self._free.acquire()
        except TimeoutError:
            raise Refused(
                503, f"{self._most} {self._what} of this cluster are running; try again later."
            ) from None
        try:
            yield
        finally:
            self._free.release()
