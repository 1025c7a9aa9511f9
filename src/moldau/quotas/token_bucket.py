"""The token bucket of `controller_mutation_rate` (KIP-599).

It holds up to the limit of all windows and is refilled with the limit per second. A single large request may
take more than it holds; the quota is exhausted until the bucket is refilled to zero.
"""

from __future__ import annotations

import math

from moldau.quotas.rate import QuotaWindows


class TokenBucket:
    __slots__ = ("_seconds", "_tokens", "_updated_ms")

    def __init__(self, windows: QuotaWindows) -> None:
        self._seconds = windows.number * windows.size_ms / 1000
        #: None: never used, therefore full.
        self._tokens: float | None = None
        self._updated_ms = 0

    def tokens(self, limit: float, now_ms: int) -> float:
        """Refill the bucket and return what it holds; less than 0 means exhausted."""
        burst = limit * self._seconds
        if self._tokens is None:
            self._tokens = burst
        else:
            refilled = self._tokens + limit * (now_ms - self._updated_ms) / 1000
            self._tokens = min(burst, refilled)
        self._updated_ms = now_ms
        return self._tokens

    def take(self, amount: float, limit: float, now_ms: int) -> None:
        self._tokens = self.tokens(limit, now_ms) - amount

    def throttle_ms(self, limit: float, now_ms: int) -> int:
        """Return how long it takes until an exhausted bucket is refilled to zero."""
        tokens = self.tokens(limit, now_ms)
        # Rounded up: a client that waits for this time must find a token.
        return math.ceil(-tokens / limit * 1000) if tokens < 0 else 0
