"""Long work on the event loop in slices: loops over thousands of items yield regularly.

Any state may change during a pause, so what was looked up before must be checked again after it.
"""

from __future__ import annotations

import asyncio
from typing import Final

from moldau.base.clock import Clock

#: The longest slice of work before other tasks run.
SLICE_SECONDS: Final = 0.002


class LoopSlice:
    """Create one when the work begins, and await `pause` after each item; it yields only when due."""

    __slots__ = ("_clock", "_started")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._started = clock.monotonic()

    async def pause(self) -> None:
        if self._clock.monotonic() - self._started > SLICE_SECONDS:
            await asyncio.sleep(0)
            self._started = self._clock.monotonic()
