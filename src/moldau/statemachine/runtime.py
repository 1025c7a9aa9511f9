"""Carries decisions of a state machine to its log and holds each answer until it may be given.

`write` runs `decide` at once, appends its records, and replays them into the state before anything else runs,
so that the next decision sees them; the answer waits until the last of those records is committed. A decision
without records, and a `read`, may have seen records that are not committed yet, so they wait for what was
appended before them.

Invariants:

- between `decide` and `replay` nothing is awaited: state, log and answer belong together;
- a refused append (an exception from the log) changes nothing;
- answers are released in the order of their offsets.

The log is an argument. It reports progress through `committed`, and loss through `failed`: whoever waits gets
the error, and the owner puts the state back to what is committed.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar

from moldau.base.errors import KafkaError
from moldau.statemachine.decision import Decision

T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)
R = TypeVar("R")


class StateMachineLog(Protocol[T_contra]):
    @property
    def end_offset(self) -> int:
        """The offset that the next record gets."""
        ...

    def append(self, records: Sequence[T_contra]) -> int:
        """Take the records as one unit and give the offset of the last; an exception means: nothing taken."""
        ...


class Runtime(Generic[T]):
    def __init__(self, log: StateMachineLog[T], replay: Callable[[Sequence[T], int], None]) -> None:
        self._log = log
        #: Called with the records of one decision and the offset of the first.
        self._replay = replay
        self._committed = log.end_offset - 1
        self._appended = log.end_offset - 1
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()
        self._closed: KafkaError | None = None

    async def write(self, decide: Callable[[], Decision[T, R]]) -> R:
        """Decide now, answer when what was decided is committed."""
        self._check_open()
        decision = decide()
        if decision.records:
            base_offset = self._log.end_offset
            self._appended = self._log.append(decision.records)
            self._replay(decision.records, base_offset)
        await self._until_committed(self._appended)
        return decision.response

    async def read(self, look: Callable[[], R]) -> R:
        """Look at the state now, answer when everything it showed is committed."""
        self._check_open()
        seen = look()
        await self._until_committed(self._appended)
        return seen

    def committed(self, offset: int) -> None:
        """Everything up to `offset` is committed: release who waited for it."""
        self._committed = offset
        while self._waiting and self._waiting[0][0] <= offset:
            _, future = self._waiting.popleft()
            if not future.done():
                future.set_result(None)

    def failed(self, error: KafkaError) -> None:
        """What was appended after the last commit is lost; the state has been put back accordingly."""
        self._appended = self._log.end_offset - 1
        waiting, self._waiting = self._waiting, deque()
        for _, future in waiting:
            if not future.done():
                future.set_exception(KafkaError(error.code, error.message))

    def refuse(self, error: KafkaError) -> None:
        """Decide nothing from now on; what is under way goes on."""
        self._closed = error

    def close(self, error: KafkaError) -> None:
        """Decide nothing from now on, and what is under way is lost."""
        self.refuse(error)
        self.failed(error)

    def _check_open(self) -> None:
        if self._closed is not None:
            raise KafkaError(self._closed.code, self._closed.message)

    async def _until_committed(self, offset: int) -> None:
        if offset <= self._committed:
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((offset, future))
        await future
