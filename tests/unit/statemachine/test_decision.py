"""Promised responses: when a later decision resolves them, and how they fail with the log."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import pytest

from moldau.base.errors import ErrorCode, KafkaError
from moldau.statemachine.decision import Decision, Promise
from moldau.statemachine.effects import Effect, ResolveRegexes
from moldau.statemachine.runtime import Runtime

GONE = KafkaError(ErrorCode.NOT_COORDINATOR, "gone")


class Waiting:
    """Requests wait until a delivery; the delivery is stored first."""

    def __init__(self) -> None:
        self.records: list[str] = []
        self.refusal: KafkaError | None = None
        self.waiting: list[Promise[str]] = []
        self.effects: list[Effect] = []
        self.replayed: list[tuple[int, str]] = []
        self.runtime: Runtime[str] = Runtime(self, self.replay, self.effects.append)

    @property
    def end_offset(self) -> int:
        return len(self.records)

    def append(self, records: Sequence[str]) -> int:
        if self.refusal is not None:
            raise self.refusal
        self.records.extend(records)
        return len(self.records) - 1

    def replay(self, records: Sequence[str], base_offset: int) -> None:
        self.replayed.extend(enumerate(records, base_offset))

    def wait(self) -> Decision[str, str]:
        promise: Promise[str] = Promise()
        return Decision([], promise, on_appended=lambda: self.waiting.append(promise))

    def deliver(self, *items: str) -> Decision[str, str]:
        replies: list[tuple[Promise[Any], Any]] = []

        def resolve_waiting() -> None:
            replies.extend((promise, f"got {items[0]}") for promise in self.waiting)
            self.waiting.clear()

        return Decision(
            items,
            "delivered",
            on_appended=resolve_waiting,
            replies=replies,
            effects=[ResolveRegexes(items[0], (), (), 0, 0)],
        )


def run(test: Callable[[Waiting], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(asyncio.wait_for(test(Waiting()), 5))


async def settle() -> None:
    for _ in range(3):
        await asyncio.sleep(0)


def test_promises_are_resolved_when_the_resolving_decision_is_committed() -> None:
    async def test(state: Waiting) -> None:
        guest = asyncio.ensure_future(state.runtime.write(state.wait))
        await settle()
        host = asyncio.ensure_future(state.runtime.write(lambda: state.deliver("cake")))
        await settle()
        assert not guest.done() and not host.done() and state.effects == []
        state.runtime.committed(0)
        assert await guest == "got cake"
        assert await host == "delivered"
        assert state.effects == [ResolveRegexes("cake", (), (), 0, 0)]
        assert state.replayed == [(0, "cake")]

    run(test)


def test_a_refused_append_resolves_no_promise_and_changes_nothing() -> None:
    async def test(state: Waiting) -> None:
        guest = asyncio.ensure_future(state.runtime.write(state.wait))
        await settle()
        state.refusal = KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "not enough replicas")
        with pytest.raises(KafkaError, match="not enough replicas"):
            await state.runtime.write(lambda: state.deliver("cake"))
        await settle()
        assert not guest.done() and len(state.waiting) == 1 and state.effects == []
        state.refusal = None
        state.runtime.take(lambda: state.deliver("pie"))
        state.runtime.committed(0)
        assert await guest == "got pie"

    run(test)


def test_truncated_records_fail_all_waiting_requests() -> None:
    async def test(state: Waiting) -> None:
        guest = asyncio.ensure_future(state.runtime.write(state.wait))
        await settle()
        host = asyncio.ensure_future(state.runtime.write(lambda: state.deliver("cake")))
        late = asyncio.ensure_future(state.runtime.write(state.wait))
        await settle()
        state.runtime.close(GONE)
        for task in (guest, host, late):
            with pytest.raises(KafkaError, match="gone"):
                await task
        assert state.effects == []
        with pytest.raises(KafkaError, match="gone"):
            state.runtime.take(lambda: state.deliver("pie"))

    run(test)


def test_promises_fail_when_leadership_is_lost() -> None:
    async def test(state: Waiting) -> None:
        guest = asyncio.ensure_future(state.runtime.write(state.wait))
        await settle()
        state.runtime.close(GONE)
        with pytest.raises(KafkaError, match="gone"):
            await guest

    run(test)


def test_a_decision_without_records_resolves_promises_when_the_records_it_saw_are_committed() -> None:
    async def test(state: Waiting) -> None:
        promise: Promise[str] = Promise()
        state.runtime.take(lambda: state.deliver("cake"))
        state.runtime.take(lambda: Decision([], None, replies=[(promise, "seen")]))
        assert not promise.settled
        state.runtime.committed(0)
        assert promise.value == "seen"

    run(test)


def test_a_promise_resolved_immediately_is_returned_immediately() -> None:
    async def test(state: Waiting) -> None:
        def decide() -> Decision[str, str]:
            promise: Promise[str] = Promise()
            return Decision([], promise, replies=[(promise, "at once")])

        assert await state.runtime.write(decide) == "at once"

    run(test)


def test_a_cancelled_request_does_not_disturb_the_decision() -> None:
    async def test(state: Waiting) -> None:
        guest = asyncio.ensure_future(state.runtime.write(state.wait))
        await settle()
        guest.cancel()
        await settle()
        state.runtime.take(lambda: state.deliver("cake"))
        state.runtime.committed(0)
        assert guest.cancelled() and state.effects == [ResolveRegexes("cake", (), (), 0, 0)]

    run(test)


def test_a_promise_is_settled_once() -> None:
    promise: Promise[str] = Promise()
    calls: list[int] = []
    promise.when_settled(lambda: calls.append(1))
    promise.resolve("first")
    promise.resolve("second")
    promise.fail(GONE)
    promise.when_settled(lambda: calls.append(2))
    assert (promise.value, promise.error, calls) == ("first", None, [1, 2])
