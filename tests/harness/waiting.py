"""Waiting for something to become true, with a deadline, instead of sleeping and hoping."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def eventually(
    condition: Callable[[], T], *, timeout: float = 60.0, every: float = 0.05, what: str = ""
) -> T:
    """The first truthy answer of `condition`; fails with the last answer when the deadline passes."""
    deadline = time.monotonic() + timeout
    while True:
        answer = condition()
        if answer:
            return answer
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {timeout} s: {what or condition}; last answer: {answer!r}")
        time.sleep(every)
