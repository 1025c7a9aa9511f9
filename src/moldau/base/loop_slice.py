"""Long work on the event loop, in slices: whoever goes through thousands of things gives way now and then.

Between two slices anything may happen, so nothing that was looked up before a pause is taken for granted
behind it.
"""

from __future__ import annotations

import asyncio
from typing import Final

from moldau.base.clock import Clock

#: The longest stretch of work before others get their turn.
SLICE_SECONDS: Final = 0.002


class LoopSlice:
    """Made when the work begins; `pause` is awaited after each piece and mostly does nothing."""

    __slots__ = ("_clock", "_started")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._started = clock.monotonic()

    async def pause(self) -> None:
        if self._clock.monotonic() - self._started > SLICE_SECONDS:
            await asyncio.sleep(0)
            self._started = self._clock.monotonic()
