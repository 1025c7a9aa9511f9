"""The lag of the event loop: how late a timer runs, which shows callbacks that block the loop.

A timer runs several times a second and compares the clock with its deadline. Requests that arrived meanwhile
were delayed as long. No callback should block the loop longer than `BUDGET_MS`. A lag that clients would
notice is logged, throttled. An overloaded machine has the same effect as a blocking callback.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from moldau.base.clock import Clock
from moldau.base.json_log import event

logger = logging.getLogger(__name__)

BUDGET_MS = 10.0
_INTERVAL_SECONDS = 0.05
_LOG_ABOVE_MS = 200.0
_LOG_INTERVAL_SECONDS = 10.0


class LoopLag:
    """The last and the largest lag since the start, and the number of samples above the budget."""

    def __init__(self, clock: Clock) -> None:
        self.last_ms = 0.0
        self.largest_ms = 0.0
        self.samples = 0
        self.over_budget = 0
        #: Called with each sample, in milliseconds.
        self.on_sample: Callable[[float], None] | None = None
        self._clock = clock
        self._timer: asyncio.TimerHandle | None = None
        self._next_log = 0.0

    def start(self) -> None:
        due = self._clock.monotonic() + _INTERVAL_SECONDS
        self._timer = asyncio.get_running_loop().call_later(_INTERVAL_SECONDS, self._sample, due)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _sample(self, due: float) -> None:
        now = self._clock.monotonic()
        self.last_ms = max(0.0, now - due) * 1000
        self.largest_ms = max(self.largest_ms, self.last_ms)
        self.samples += 1
        if self.on_sample is not None:
            self.on_sample(self.last_ms)
        if self.last_ms > BUDGET_MS:
            self.over_budget += 1
        if self.last_ms > _LOG_ABOVE_MS and now >= self._next_log:
            self._next_log = now + _LOG_INTERVAL_SECONDS
            logger.warning(
                "the event loop was blocked for %.0f ms; requests were delayed as long",
                self.last_ms,
                extra=event("loop.blocked", ms=round(self.last_ms)),
            )
        self.start()
