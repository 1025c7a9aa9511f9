"""A decision of a state machine: records to append, the response, and what follows from both.

Stored state changes only by replaying records. Soft state (members waiting for a rebalance, timers) changes
only in `on_appended`, which runs after the records are appended and replayed; a refused append leaves all
state as it was. Every state machine keeps to this rule, also for decisions without records, so that no
decision has a side effect before it is known to hold.

A response that depends on a later decision is a `Promise`. The later decision resolves it through its
`replies` when its own records are committed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from moldau.base.errors import KafkaError
from moldau.statemachine.effects import Effect

T = TypeVar("T")
R = TypeVar("R")


class Promise(Generic[R]):
    """A response to be given later. The first `resolve` or `fail` settles it; later calls are ignored."""

    __slots__ = ("_callback", "_settled", "error", "value")

    def __init__(self) -> None:
        self.value: R | None = None
        self.error: KafkaError | None = None
        self._settled = False
        self._callback: Callable[[], None] | None = None

    @property
    def settled(self) -> bool:
        return self._settled

    def resolve(self, value: R) -> None:
        if not self._settled:
            self.value = value
            self._settle()

    def fail(self, error: KafkaError) -> None:
        if not self._settled:
            self.error = error
            self._settle()

    def when_settled(self, callback: Callable[[], None]) -> None:
        """Call `callback` once; immediately if the promise is settled already."""
        if self._settled:
            callback()
        else:
            self._callback = callback

    def _settle(self) -> None:
        self._settled = True
        if self._callback is not None:
            self._callback()


#: Promises of other requests with the responses that resolve them.
Replies = list[tuple[Promise[Any], Any]]


@dataclass(frozen=True, slots=True)
class Decision(Generic[T, R]):
    """Records are appended together or not at all; a decision without records only reads."""

    records: Sequence[T]
    response: R | Promise[R]
    #: Changes soft state, after the records are replayed and before the next decision.
    on_appended: Callable[[], None] | None = None
    #: Promises of other requests, resolved once the records are committed. `on_appended` may still add some.
    replies: Sequence[tuple[Promise[Any], Any]] = ()
    #: Work for executors, started once the records are committed.
    effects: Sequence[Effect] = ()
    #: Called instead of `on_appended` if the log refuses the records.
    on_refused: Callable[[KafkaError], None] | None = None


class DecisionBuilder(Generic[T]):
    """Collects the parts of one decision that is made in several steps."""

    __slots__ = ("_soft_changes", "effects", "records", "replies")

    def __init__(self) -> None:
        self.records: list[T] = []
        self.replies: Replies = []
        self.effects: list[Effect] = []
        self._soft_changes: list[Callable[[], None]] = []

    def once_appended(self, change: Callable[[], None]) -> None:
        """Add a change of soft state; changes run in the order in which they were added."""
        self._soft_changes.append(change)

    def build(self, response: R) -> Decision[T, R]:
        return Decision(
            self.records, response, self._apply_soft_changes, replies=self.replies, effects=self.effects
        )

    def _apply_soft_changes(self) -> None:
        for change in self._soft_changes:
            change()
