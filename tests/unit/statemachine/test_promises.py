"""Answers that another decision gives: when, and what becomes of them when the log fails."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import pytest

from moldau.base.errors import ErrorCode, KafkaError
from moldau.statemachine.decision import Decision, Promise
from moldau.statemachine.runtime import Runtime

GONE = KafkaError(ErrorCode.NOT_COORDINATOR, "gone")


class Room:
    """Guests wait until the host comes; what the host brings is stored first."""

    def __init__(self) -> None:
        self.records: list[str] = []
        self.refusal: KafkaError | None = None
        self.waiting: list[Promise[str]] = []
        self.effects: list[str] = []
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

    def enter(self) -> Decision[str, str]:
        promise: Promise[str] = Promise()
        return Decision([], promise, on_appended=lambda: self.waiting.append(promise))

    def bring(self, *gifts: str) -> Decision[str, str]:
        replies: list[tuple[Promise[Any], Any]] = []

        def then() -> None:
            replies.extend((promise, f"got {gifts[0]}") for promise in self.waiting)
            self.waiting.clear()

        return Decision(gifts, "welcome", on_appended=then, replies=replies, effects=[f"announce {gifts[0]}"])


def run(test: Callable[[Room], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(asyncio.wait_for(test(Room()), 5))


async def settle() -> None:
    for _ in range(3):
        await asyncio.sleep(0)


def test_promises_are_kept_when_the_decision_that_keeps_them_is_committed() -> None:
    async def test(room: Room) -> None:
        guest = asyncio.ensure_future(room.runtime.write(room.enter))
        await settle()
        host = asyncio.ensure_future(room.runtime.write(lambda: room.bring("cake")))
        await settle()
        assert not guest.done() and not host.done() and room.effects == []
        room.runtime.committed(0)
        assert await guest == "got cake"
        assert await host == "welcome"
        assert room.effects == ["announce cake"]
        assert room.replayed == [(0, "cake")]

    run(test)


def test_a_refused_append_keeps_no_promise_and_changes_nothing() -> None:
    async def test(room: Room) -> None:
        guest = asyncio.ensure_future(room.runtime.write(room.enter))
        await settle()
        room.refusal = KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "not enough replicas")
        with pytest.raises(KafkaError, match="not enough replicas"):
            await room.runtime.write(lambda: room.bring("cake"))
        await settle()
        assert not guest.done() and len(room.waiting) == 1 and room.effects == []
        room.refusal = None
        room.runtime.take(lambda: room.bring("pie"))
        room.runtime.committed(0)
        assert await guest == "got pie"

    run(test)


def test_what_was_appended_and_is_lost_fails_everybody_who_waits_for_it() -> None:
    async def test(room: Room) -> None:
        guest = asyncio.ensure_future(room.runtime.write(room.enter))
        await settle()
        host = asyncio.ensure_future(room.runtime.write(lambda: room.bring("cake")))
        late = asyncio.ensure_future(room.runtime.write(room.enter))
        await settle()
        room.runtime.close(GONE)
        for task in (guest, host, late):
            with pytest.raises(KafkaError, match="gone"):
                await task
        assert room.effects == []
        with pytest.raises(KafkaError, match="gone"):
            room.runtime.take(lambda: room.bring("pie"))

    run(test)


def test_who_waits_for_a_promise_when_leadership_is_lost_is_told() -> None:
    async def test(room: Room) -> None:
        guest = asyncio.ensure_future(room.runtime.write(room.enter))
        await settle()
        room.runtime.close(GONE)
        with pytest.raises(KafkaError, match="gone"):
            await guest

    run(test)


def test_a_decision_without_records_keeps_promises_when_what_it_saw_is_committed() -> None:
    async def test(room: Room) -> None:
        promise: Promise[str] = Promise()
        room.runtime.take(lambda: room.bring("cake"))
        room.runtime.take(lambda: Decision([], None, replies=[(promise, "seen")]))
        assert not promise.settled
        room.runtime.committed(0)
        assert promise.value == "seen"

    run(test)


def test_a_promise_that_is_kept_at_once_is_answered_at_once() -> None:
    async def test(room: Room) -> None:
        def decide() -> Decision[str, str]:
            promise: Promise[str] = Promise()
            return Decision([], promise, replies=[(promise, "at once")])

        assert await room.runtime.write(decide) == "at once"

    run(test)


def test_who_gave_up_waiting_is_not_missed() -> None:
    async def test(room: Room) -> None:
        guest = asyncio.ensure_future(room.runtime.write(room.enter))
        await settle()
        guest.cancel()
        await settle()
        room.runtime.take(lambda: room.bring("cake"))
        room.runtime.committed(0)
        assert guest.cancelled() and room.effects == ["announce cake"]

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
