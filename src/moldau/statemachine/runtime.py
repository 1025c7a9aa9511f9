"""Carries decisions of a state machine to its log and holds each answer until it may be given.

`write` runs `decide` at once, appends its records, and replays them into the state before anything else runs,
so that the next decision sees them; the answer waits until the last of those records is committed, and so do
the decision's replies to others and its effects. A decision without records, and a `read`, may have seen
records that are not committed yet, so they wait for what was appended before them.

Invariants:

- between `decide` and `replay` nothing is awaited: state, log and answer belong together;
- a refused append (an exception from the log) changes nothing;
- answers are released in the order of their offsets, whether or not somebody still waits for them.

The log is an argument. It reports progress through `committed`, and loss through `failed`: whoever waits gets
the error, and the owner puts the state back to what is committed.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from moldau.base.errors import ErrorCode, KafkaError
from moldau.statemachine.decision import Decision, Promise

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


class Patience(NamedTuple):
    """How long an answer may wait for the commit, and what is said then; the records are not taken back."""

    milliseconds: Callable[[], int]
    error: ErrorCode


class Runtime(Generic[T]):
    def __init__(
        self,
        log: StateMachineLog[T],
        replay: Callable[[Sequence[T], int], None],
        on_effect: Callable[[Any], None] | None = None,
        committed: int | None = None,
        patience: Patience | None = None,
    ) -> None:
        """`committed` is the last offset that is; by default everything the log holds."""
        self._log = log
        self._patience = patience
        #: Called with the records of one decision and the offset of the first.
        self._replay = replay
        self._on_effect = on_effect
        self._committed = log.end_offset - 1 if committed is None else committed
        self._appended = log.end_offset - 1
        self._waiting: deque[tuple[int, Promise[None]]] = deque()
        #: Answers that wait for another decision.
        self._promised: dict[Promise[Any], None] = {}
        self._closed: KafkaError | None = None

    async def write(self, decide: Callable[[], Decision[T, R]]) -> R:
        """Decide now, answer when what was decided is committed."""
        decision = self.take(decide)
        await self._until_committed(self._appended)
        response = decision.response
        if isinstance(response, Promise):
            return await self._kept(response)
        return response

    def take(self, decide: Callable[[], Decision[T, R]]) -> Decision[T, R]:
        """Decide now; what follows from it happens when it is committed, and nobody waits for the answer."""
        self._check_open()
        decision = decide()
        if decision.records:
            base_offset = self._log.end_offset
            self._appended = self._append(decision)
            self._replay(decision.records, base_offset)
        if decision.then is not None:
            decision.then()
        if decision.replies or decision.effects:
            committed = self._when_committed(self._appended)
            committed.when_settled(lambda: self._follow_up(decision, committed.error))
        return decision

    def _append(self, decision: Decision[T, Any]) -> int:
        try:
            return self._log.append(decision.records)
        except KafkaError as error:
            if decision.otherwise is not None:
                decision.otherwise(error)
            raise

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
            _, promise = self._waiting.popleft()
            promise.resolve(None)

    def failed(self, error: KafkaError) -> None:
        """What was appended after the last commit is lost; the state has been put back accordingly."""
        self._appended = self._log.end_offset - 1
        self._disappoint(error)

    def _disappoint(self, error: KafkaError) -> None:
        waiting, self._waiting = self._waiting, deque()
        for _, promise in waiting:
            promise.fail(error)
        promised, self._promised = self._promised, {}
        for each in promised:
            each.fail(error)

    def refuse(self, error: KafkaError) -> None:
        """Decide nothing from now on; what is under way goes on."""
        self._closed = error

    def close(self, error: KafkaError) -> None:
        """Decide nothing from now on, and what is under way is lost. The log may be gone by then."""
        self.refuse(error)
        self._disappoint(error)

    def _check_open(self) -> None:
        if self._closed is not None:
            raise KafkaError(self._closed.code, self._closed.message)

    def _follow_up(self, decision: Decision[T, Any], error: KafkaError | None) -> None:
        for reply, value in decision.replies:
            if error is None:
                reply.resolve(value)
            else:
                reply.fail(error)
        if error is None and self._on_effect is not None:
            for effect in decision.effects:
                self._on_effect(effect)

    def _when_committed(self, offset: int) -> Promise[None]:
        promise: Promise[None] = Promise()
        if offset <= self._committed:
            promise.resolve(None)
        else:
            self._waiting.append((offset, promise))
        return promise

    async def _until_committed(self, offset: int) -> None:
        if offset <= self._committed:
            return
        waiting = _settled(self._when_committed(offset))
        if self._patience is None:
            await waiting
            return
        milliseconds = self._patience.milliseconds()
        try:
            async with asyncio.timeout(milliseconds / 1000):
                await waiting
        except TimeoutError:
            raise KafkaError(self._patience.error, f"not committed after {milliseconds} ms") from None

    async def _kept(self, promise: Promise[R]) -> R:
        if not promise.settled:
            self._promised[promise] = None
        try:
            return await _settled(promise)
        finally:
            self._promised.pop(promise, None)


async def _settled(promise: Promise[R]) -> R:
    future: asyncio.Future[R] = asyncio.get_running_loop().create_future()

    def settle() -> None:
        if future.done():
            return
        if promise.error is not None:
            future.set_exception(KafkaError(promise.error.code, promise.error.message))
        else:
            future.set_result(promise.value)  # type: ignore[arg-type]

    promise.when_settled(settle)
    return await future
