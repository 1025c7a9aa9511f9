"""Answers that pages share for some seconds."""

from __future__ import annotations

import asyncio

import pytest

from moldau.base.errors import ErrorCode, KafkaError
from moldau.console.cluster.shared import SharedAnswers


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now

    def time_ms(self) -> int:
        return int(self.now * 1000)

    def time_ns(self) -> int:
        return self.time_ms() * 1_000_000


def test_viewers_share_a_request_and_its_answer_for_some_seconds() -> None:
    async def play() -> None:
        clock, asked = Clock(), []
        shared = SharedAnswers(clock)

        async def ask() -> int:
            asked.append(1)
            await asyncio.sleep(0)
            return len(asked)

        assert await asyncio.gather(*(shared.get("users", ask) for _ in range(50))) == [1] * 50
        assert await shared.get("quotas", ask) == 2
        clock.now += 2
        assert await shared.get("users", ask) == 1
        clock.now += 2
        assert await shared.get("users", ask) == 3
        shared.clear()
        assert await shared.get("users", ask) == 4

    asyncio.run(play())


def test_an_error_is_not_kept_and_a_viewer_that_leaves_cancels_nothing() -> None:
    async def play() -> None:
        shared = SharedAnswers(Clock())
        gate, answers = asyncio.Event(), [KafkaError(ErrorCode.REQUEST_TIMED_OUT), None]

        async def ask() -> str:
            await gate.wait()
            error = answers.pop(0)
            if error is not None:
                raise error
            return "answer"

        first, second = (asyncio.create_task(shared.get("users", ask)) for _ in range(2))
        await asyncio.sleep(0)
        first.cancel()
        gate.set()
        with pytest.raises(KafkaError):
            await second
        assert await shared.get("users", ask) == "answer"

    asyncio.run(play())
