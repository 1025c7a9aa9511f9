"""When something that failed is tried again: after a pause that doubles, and not for ever.

A failure after a good while of work begins the count anew. Time is an argument.
"""

from __future__ import annotations

from dataclasses import dataclass

from moldau.base.backoff import Backoff

#: So many failures in a row, and it is given up.
TRIES = 8


@dataclass(frozen=True, slots=True)
class Policy:
    first_pause_s: float = 1.0
    longest_pause_s: float = 60.0
    tries: int = TRIES
    #: Who has worked for so long had a new failure, not the old one.
    healthy_s: float = 60.0


class Restarts:
    """The failures of one thing that runs."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._in_a_row = 0
        self._started: float | None = None
        #: All restarts so far.
        self.count = 0

    def started(self, now: float) -> None:
        self._started = now

    def failed(self, now: float) -> float | None:
        """How long to wait before the next try, or None if there is none."""
        healthy = self._started is not None and now - self._started >= self._policy.healthy_s
        self._in_a_row = 1 if healthy else self._in_a_row + 1
        if self._in_a_row >= self._policy.tries:
            return None
        self.count += 1
        return Backoff(self._policy.first_pause_s, self._policy.longest_pause_s).seconds(self._in_a_row)
