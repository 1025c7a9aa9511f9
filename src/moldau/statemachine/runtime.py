"""Runs decisions of a state machine against its log and holds each response until it is committed.

`write` runs `decide`, appends its records and replays them into the state before any other decision runs,
so that the next decision sees them. The response, the decision's replies and its effects wait until the last
of its records is committed. A decision without records, and a `read`, may have seen records that are not
committed yet; they wait for everything appended before them.

Invariants:

- nothing is awaited between `decide` and `replay`: state, log and response belong together;
- a refused append (an exception from the log) changes nothing;
- responses are released in the order of their offsets, whether or not a client still waits for them.

The log is an argument. It reports progress through `committed` and truncation through `failed`: waiting
requests fail with the given error, and the owner restores the committed state.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from moldau.base.errors import ErrorCode, KafkaError
from moldau.statemachine.decision import Decision, Promise
from moldau.statemachine.effects import Effect

T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)
R = TypeVar("R")


class StateMachineLog(Protocol[T_contra]):
    @property
    def end_offset(self) -> int:
        """The offset of the next record."""
        ...

    def append(self, records: Sequence[T_contra]) -> int:
        """Append the records as one unit and return the offset of the last; raise to refuse all of them."""
        ...


class CommitTimeout(NamedTuple):
    """The maximum wait for a commit, and the error after that; the records stay in the log."""

    milliseconds: Callable[[], int]
    error: ErrorCode


class Runtime(Generic[T]):
    def __init__(
        self,
        log: StateMachineLog[T],
        replay: Callable[[Sequence[T], int], None],
        on_effect: Callable[[Effect], None] | None = None,
        committed: int | None = None,
        timeout: CommitTimeout | None = None,
    ) -> None:
        """`committed` is the last committed offset; by default, everything in the log is committed."""
        self._log = log
        self._timeout = timeout
        #: Called with the records of one decision and the offset of the first one.
        self._replay = replay
        self._on_effect = on_effect
        self._committed = log.end_offset - 1 if committed is None else committed
        self._appended = log.end_offset - 1
        self._waiting: deque[tuple[int, Promise[None]]] = deque()
        #: Responses that wait for another decision.
        self._promises: dict[Promise[Any], None] = {}
        self._closed: KafkaError | None = None

    async def write(self, decide: Callable[[], Decision[T, R]]) -> R:
        """Decide now; return the response when the decision is committed."""
        decision = self.take(decide)
        await self._until_committed(self._appended)
        response = decision.response
        if isinstance(response, Promise):
            return await self._promised(response)
        return response

    def take(self, decide: Callable[[], Decision[T, R]]) -> Decision[T, R]:
        """Decide now, without waiting; replies and effects follow when the decision is committed."""
        self._check_open()
        decision = decide()
        if decision.records:
            base_offset = self._log.end_offset
            self._appended = self._append(decision)
            self._replay(decision.records, base_offset)
        if decision.on_appended is not None:
            decision.on_appended()
        if decision.replies or decision.effects:
            committed = self._when_committed(self._appended)
            committed.when_settled(lambda: self._follow_up(decision, committed.error))
        return decision

    def _append(self, decision: Decision[T, Any]) -> int:
        try:
            return self._log.append(decision.records)
        except KafkaError as error:
            if decision.on_refused is not None:
                decision.on_refused(error)
            raise

    async def read(self, look: Callable[[], R]) -> R:
        """Read the state now; return the result when everything it may show is committed."""
        self._check_open()
        seen = look()
        await self._until_committed(self._appended)
        return seen

    def committed(self, offset: int) -> None:
        """Release the responses that waited for offsets up to `offset`."""
        self._committed = offset
        while self._waiting and self._waiting[0][0] <= offset:
            _, promise = self._waiting.popleft()
            promise.resolve(None)

    def failed(self, error: KafkaError) -> None:
        """Fail waiting requests: uncommitted records were truncated, and the state has been restored."""
        self._appended = self._log.end_offset - 1
        self._fail_waiting(error)

    def _fail_waiting(self, error: KafkaError) -> None:
        waiting, self._waiting = self._waiting, deque()
        for _, promise in waiting:
            promise.fail(error)
        promises, self._promises = self._promises, {}
        for each in promises:
            each.fail(error)

    def refuse(self, error: KafkaError) -> None:
        """Refuse new decisions; pending ones continue."""
        self._closed = error

    def close(self, error: KafkaError) -> None:
        """Refuse new decisions and fail pending ones. The log may be closed already."""
        self.refuse(error)
        self._fail_waiting(error)

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
        if self._timeout is None:
            await waiting
            return
        milliseconds = self._timeout.milliseconds()
        try:
            async with asyncio.timeout(milliseconds / 1000):
                await waiting
        except TimeoutError:
            raise KafkaError(
                self._timeout.error, f"The records were not committed within {milliseconds} ms."
            ) from None

    async def _promised(self, promise: Promise[R]) -> R:
        if not promise.settled:
            self._promises[promise] = None
        try:
            return await _settled(promise)
        finally:
            self._promises.pop(promise, None)


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
