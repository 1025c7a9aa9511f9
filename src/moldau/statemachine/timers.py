"""The timers of a state machine: each makes a decision later, under a key."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from moldau.statemachine.coordinator_records import Entry
from moldau.statemachine.decision import Decision


class Timers(Protocol):
    def schedule(self, key: str, delay_ms: int, decide: Callable[[], Decision[Entry, Any]]) -> None:
        """Run `decide` after `delay_ms`, replacing the decision scheduled under `key` before."""
        ...

    def cancel(self, key: str) -> None: ...

    def is_scheduled(self, key: str) -> bool: ...
