"""Waits after errors that may pass: they grow, are spread at random, and end with a bound.

Kafka Connect fails a connector or task whose target is away when it starts; ours waits for the target. Its
state stays RUNNING meanwhile, and the status has the reason as its trace.
"""

from __future__ import annotations

import random
from typing import Final

from moldau.base.errors import KafkaError
from moldau.client.wire.cluster import is_retriable
from moldau.pipelines.connect.data.errors import RetriableError

FIRST_S: Final = 0.5
MAX_S: Final = 60.0


class Backoff:
    """The waits of one sequence of failures."""

    def __init__(self, first_s: float = FIRST_S, longest_s: float = MAX_S) -> None:
        self._first_s = first_s
        self._longest_s = longest_s
        self._failures = 0

    def failed(self) -> float:
        """Count a failure and return how long to wait, in seconds."""
        bound = min(self._first_s * (1 << min(self._failures, 30)), self._longest_s)
        self._failures += 1
        return bound * random.uniform(0.5, 1.0)

    def reset(self) -> None:
        self._failures = 0


def may_pass(error: BaseException) -> bool:
    """Return whether the same operation can succeed later."""
    if isinstance(error, KafkaError):
        return is_retriable(error)
    return isinstance(error, RetriableError | ConnectionError | TimeoutError)
