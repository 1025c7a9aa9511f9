"""Bounds for the validation of data by JSON Schemas, which clients choose and the event loop pays for.

- Patterns are searched with RE2, in linear time. The package jsonschema searches with Python's `re`, where a
  short pattern can take hours; its modules have no other hook than the name `re`.
- A validation ends after `MOST_SECONDS`: references that branch take exponential time in any validator. The
  alarm of the process interrupts it, so the bound holds in the main thread only, where the loop runs.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final

from moldau.schemas.json.patterns import Pattern, PatternError

MOST_SECONDS: Final = 1.0


class ValidationTooSlow(ValueError):
    pass


class _LinearSearch:
    """Takes the place of the module `re` in the validators."""

    @staticmethod
    def search(pattern: str, value: str) -> bool:
        try:
            compiled = Pattern(pattern)
        except PatternError as error:
            raise ValueError(f"the pattern {pattern!r} is not valid: {error}") from None
        if not compiled.evaluated:
            raise ValueError(f"the pattern {pattern!r} cannot be searched in linear time")
        return compiled.found_in(value)


def use_linear_patterns() -> None:
    """Let the validators of this process search with RE2."""
    from jsonschema import _keywords, _legacy_keywords, _utils

    for module in (_keywords, _legacy_keywords, _utils):
        vars(module)["re"] = _LinearSearch


@contextmanager
def bounded_time() -> Iterator[None]:
    """Raise `ValidationTooSlow` if the code takes longer than `MOST_SECONDS`."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = signal.signal(signal.SIGALRM, _interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, MOST_SECONDS)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    finally:
        signal.signal(signal.SIGALRM, previous)


def _interrupt(number: int, frame: FrameType | None) -> Any:
    raise ValidationTooSlow(f"the validation takes longer than {MOST_SECONDS:.0f} s")
