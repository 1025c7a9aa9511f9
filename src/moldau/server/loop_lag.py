"""How late the event loop runs what is due: the one figure that shows a callback holding it up.

A timer comes round several times a second and looks at the clock. What it is late by, every request that
arrived meanwhile was late by too. No callback should hold the loop longer than `BUDGET_MS`; the figures are
there for whoever shows metrics, and a lag that clients would notice is logged, seldom. A machine that is too
busy to give the process its turn looks the same from in here.
"""

from __future__ import annotations

import asyncio
import logging

from moldau.base.clock import Clock

log = logging.getLogger(__name__)

BUDGET_MS = 10.0
_INTERVAL_SECONDS = 0.05
_COMPLAIN_ABOVE_MS = 200.0
_COMPLAIN_EVERY_SECONDS = 10.0


class LoopLag:
    """`last_ms` and `largest_ms` since the start, and how many of the looks found more than the budget."""

    def __init__(self, clock: Clock) -> None:
        self.last_ms = 0.0
        self.largest_ms = 0.0
        self.looks = 0
        self.over_budget = 0
        self._clock = clock
        self._timer: asyncio.TimerHandle | None = None
        self._next_complaint = 0.0

    def start(self) -> None:
        due = self._clock.monotonic() + _INTERVAL_SECONDS
        self._timer = asyncio.get_running_loop().call_later(_INTERVAL_SECONDS, self._look, due)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self, due: float) -> None:
        now = self._clock.monotonic()
        self.last_ms = max(0.0, now - due) * 1000
        self.largest_ms = max(self.largest_ms, self.last_ms)
        self.looks += 1
        if self.last_ms > BUDGET_MS:
            self.over_budget += 1
        if self.last_ms > _COMPLAIN_ABOVE_MS and now >= self._next_complaint:
            self._next_complaint = now + _COMPLAIN_EVERY_SECONDS
            log.warning("the event loop was held up for %.0f ms; requests waited that long", self.last_ms)
        self.start()
