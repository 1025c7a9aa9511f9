"""Timers as a state machine sees them: a decision that is to be taken later, under a key."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from moldau.statemachine.coordinator_records import Entry
from moldau.statemachine.decision import Decision


class Timers(Protocol):
    def schedule(self, key: str, delay_ms: int, decide: Callable[[], Decision[Entry, Any]]) -> None:
        """Take `decide` after `delay_ms`, instead of what was scheduled under that key before."""
        ...

    def cancel(self, key: str) -> None: ...

    def is_scheduled(self, key: str) -> bool: ...
