"""What a state machine gives back when asked: the records that make it so, the answer, and what follows.

Most state is changed only by replaying records. What is never stored (who waits for a rebalance, which timer
runs) changes in `then`, which is called once the records are taken, so a refused append leaves it alone.

An answer may depend on something that comes later: then it is a `Promise`, kept by another decision in its
`replies` when *its* records are committed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from moldau.base.errors import KafkaError

T = TypeVar("T")
R = TypeVar("R")


class Promise(Generic[R]):
    """An answer that comes later. Settled once; what comes after that is ignored."""

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
        """Called once, at once if it is settled already."""
        if self._settled:
            callback()
        else:
            self._callback = callback

    def _settle(self) -> None:
        self._settled = True
        if self._callback is not None:
            self._callback()


@dataclass(frozen=True, slots=True)
class Decision(Generic[T, R]):
    """Records are appended together or not at all; without any, the decision only read."""

    records: Sequence[T]
    response: R | Promise[R]
    #: Once the records are appended and replayed, before anything else is decided.
    then: Callable[[], None] | None = None
    #: Promises to others and what they get, once the records are committed.
    replies: Sequence[tuple[Promise[Any], Any]] = ()
    #: What the owner of the state machine is to do, once the records are committed.
    effects: Sequence[Any] = ()
    #: When the log refuses the records: nothing is stored, and others may have to be told.
    otherwise: Callable[[KafkaError], None] | None = None
