"""Exponential back-off: how long to wait before the next attempt of something that failed.

The delay doubles with every consecutive failure, up to a maximum, as `retry.backoff.ms` and
`retry.backoff.max.ms` describe it (KIP-580, without jitter). The policy is pure: callers count failures, keep
their own deadline and sleep.
"""

from __future__ import annotations

from dataclasses import dataclass

#: Any initial delay has reached its maximum by then, and the power still fits into a float.
_MAX_EXPONENT = 64


@dataclass(frozen=True, slots=True)
class Backoff:
    initial_seconds: float
    maximum_seconds: float

    @classmethod
    def of_ms(cls, initial_ms: int, maximum_ms: int) -> Backoff:
        return cls(initial_ms / 1000, maximum_ms / 1000)

    def seconds(self, failures: int) -> float:
        """Return the delay after this many consecutive failures (1: after the first)."""
        exponent = min(max(failures, 1) - 1, _MAX_EXPONENT)
        return min(self.initial_seconds * float(2**exponent), self.maximum_seconds)
