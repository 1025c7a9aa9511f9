"""Restarts of a pipeline or driver after a failure: after a delay that doubles, a limited number of
times.

A failure after a long run counts as the first one. Time is an argument.
"""

from __future__ import annotations

from dataclasses import dataclass

from moldau.base.backoff import Backoff

#: The number of consecutive failures after which there is no restart.
TRIES = 8
#: The delay before a restart.
BACKOFF = Backoff(initial_seconds=1.0, maximum_seconds=60.0)


@dataclass(frozen=True, slots=True)
class Policy:
    backoff: Backoff = BACKOFF
    tries: int = TRIES
    #: A failure after a run of this length is not consecutive to the previous one.
    healthy_s: float = 60.0


class Restarts:
    """The failures and restarts of one pipeline or driver."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._consecutive = 0
        self._started: float | None = None
        #: The total number of restarts.
        self.count = 0

    def started(self, now: float) -> None:
        self._started = now

    def failed(self, now: float) -> float | None:
        """Return the delay in seconds before the next restart; None if there is none."""
        healthy = self._started is not None and now - self._started >= self._policy.healthy_s
        self._consecutive = 1 if healthy else self._consecutive + 1
        if self._consecutive >= self._policy.tries:
            return None
        self.count += 1
        return self._policy.backoff.seconds(self._consecutive)
