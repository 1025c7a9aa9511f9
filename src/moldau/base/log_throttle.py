"""When something that keeps going wrong is worth another line in the log: at once, then ever more seldom.

What lasts for hours (a broker that is down, a controller that is not to be found) is tried again all the
time; saying so each time would bury everything else.
"""

from __future__ import annotations

import math
from typing import Final

_FIRST_SECONDS: Final = 10.0
_LONGEST_SECONDS: Final = 600.0


class Seldom:
    """`is_due` is asked whenever it happens, `over` told when it does not any more."""

    __slots__ = ("_next", "_pause", "_reason")

    def __init__(self) -> None:
        self._reason: object = None
        self._next = -math.inf
        self._pause = _FIRST_SECONDS

    def is_due(self, now: float, reason: object = None) -> bool:
        """`now` in seconds of a clock that only goes forward; another reason than before is news."""
        if reason != self._reason:
            self.over()
            self._reason = reason
        if now < self._next:
            return False
        self._next = now + self._pause
        self._pause = min(2 * self._pause, _LONGEST_SECONDS)
        return True

    def over(self) -> None:
        self._reason, self._next = None, -math.inf
        self._pause = _FIRST_SECONDS
