"""Throttling of repeated log messages: the first is logged at once, later ones at growing intervals.

A failure that lasts for hours (a broker that is down, an unreachable controller) is retried all the time;
logging each attempt would hide everything else.
"""

from __future__ import annotations

import math
from typing import Final

_FIRST_SECONDS: Final = 10.0
_MAX_SECONDS: Final = 600.0


class LogThrottle:
    """Call `is_due` at every failure, and `reset` when the failure has ended."""

    __slots__ = ("_next", "_pause", "_reason")

    def __init__(self) -> None:
        self._reason: object = None
        self._next = -math.inf
        self._pause = _FIRST_SECONDS

    def is_due(self, now: float, reason: object = None) -> bool:
        """Whether to log now (monotonic seconds); a new reason is always logged."""
        if reason != self._reason:
            self.reset()
            self._reason = reason
        if now < self._next:
            return False
        self._next = now + self._pause
        self._pause = min(2 * self._pause, _MAX_SECONDS)
        return True

    def reset(self) -> None:
        self._reason, self._next = None, -math.inf
        self._pause = _FIRST_SECONDS
