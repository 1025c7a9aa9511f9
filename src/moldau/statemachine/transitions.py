"""Tables of state transitions: every rule of a state machine in one place, and the one check of it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Generic, TypeVar

S = TypeVar("S", bound=Enum)
E = TypeVar("E", bound=Enum)


class InvalidTransitionError(RuntimeError):
    """An event occurred in a state that does not allow it: a broken invariant, not a client's mistake."""


class TransitionTable(Generic[S, E]):
    """The next state by state and event. An event that is missing from a state's row is not allowed."""

    __slots__ = ("rows",)

    def __init__(self, rows: Mapping[S, Mapping[E, S]]) -> None:
        self.rows = rows

    def after(self, state: S, event: E) -> S:
        try:
            return self.rows[state][event]
        except KeyError:
            raise InvalidTransitionError(f"{event.name} is not allowed in state {state.name}") from None

    def allows(self, state: S, event: E) -> bool:
        return event in self.rows[state]
