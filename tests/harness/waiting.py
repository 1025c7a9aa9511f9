"""Wait for a condition with a deadline instead of a fixed sleep."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def eventually(
    condition: Callable[[], T], *, timeout: float = 60.0, every: float = 0.05, what: str = ""
) -> T:
    """Return the first truthy result of `condition`; fail with the last result after the deadline."""
    deadline = time.monotonic() + timeout
    while True:
        answer = condition()
        if answer:
            return answer
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {timeout} s: {what or condition}; last result: {answer!r}")
        time.sleep(every)
