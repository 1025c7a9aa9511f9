"""Throttling of repeated log messages.

A failure that lasts for hours (a broker that is down, an unreachable controller) is retried all the time;
logging each attempt would hide everything else: `LogThrottle` logs the first at once and later ones at
growing intervals. Clients that are not known must not fill the log: `Repeats` logs the same line once in an
interval.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable
from typing import Final

_FIRST_SECONDS: Final = 10.0
_MAX_SECONDS: Final = 600.0
_NUMBERS: Final = re.compile("[0-9]+")
#: What a client can choose usually comes later in a sentence.
_COMPARED: Final = 60


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


class Repeats:
    """Counts lines that are the same as one in the last interval, up to `most` different ones."""

    def __init__(
        self, now: Callable[[], float] = time.monotonic, interval_s: float = 60.0, most: int = 1000
    ) -> None:
        self._now = now
        self._interval_s = interval_s
        self._most = most
        #: By line, when it was logged, and how often it was left out since then.
        self._logged: dict[str, tuple[float, int]] = {}

    def left_out(self, line: str) -> int | None:
        """Return how often the line was left out before; None if it is left out now."""
        now = self._now()
        logged_at, count = self._logged.get(line, (-self._interval_s, 0))
        if now - logged_at < self._interval_s:
            self._logged[line] = logged_at, count + 1
            return None
        self._logged.pop(line, None)
        if len(self._logged) >= self._most:
            del self._logged[next(iter(self._logged))]
        self._logged[line] = now, 0
        return count

    def refusal(self, host: str, reason: str) -> str | None:
        """Return the reason why a client is refused, with how often it was left out; None if it is left out.

        Reasons that differ in numbers only are the same, so that a client cannot choose how much is logged.
        """
        left_out = self.left_out(f"{host} {_NUMBERS.sub('', reason[:_COMPARED])}")
        if not left_out:
            return None if left_out is None else reason
        return f"{reason} ({left_out} more since the last such line)"
