"""Answers that pages share for some seconds."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing

import pytest

from moldau.base.errors import ErrorCode, KafkaError
from moldau.console.cluster.shared import SharedAnswers, SharedStreams


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


def test_viewers_share_a_stream_while_there_are_any() -> None:
    async def play() -> None:
        streams, begun, ended = SharedStreams(), [], []
        items: asyncio.Queue[int] = asyncio.Queue()

        async def read() -> AsyncIterator[int]:
            begun.append(1)
            try:
                while True:
                    yield await items.get()
            finally:
                ended.append(1)

        async def follow(count: int) -> list[int]:
            found = []
            async with aclosing(streams.follow("orders", read)) as following:
                async for item in following:
                    found.append(item)
                    if len(found) == count:
                        break
            return found

        viewers = [asyncio.create_task(follow(count)) for count in (1, 3, 3)]
        for number in range(3):
            await asyncio.sleep(0.01)
            items.put_nowait(number)
        assert await asyncio.gather(*viewers) == [[0], [0, 1, 2], [0, 1, 2]]
        await asyncio.sleep(0.01)
        assert (begun, ended) == ([1], [1])
        items.put_nowait(7)
        assert await follow(1) == [7]
        assert begun == [1, 1]

    asyncio.run(play())


def test_an_error_ends_the_stream_of_all_viewers_and_a_slow_one_misses_items() -> None:
    async def play() -> None:
        streams = SharedStreams()

        async def read() -> AsyncIterator[int]:
            for number in range(100):
                yield number
            raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)

        async def follow() -> list[int]:
            found: list[int] = []
            with pytest.raises(KafkaError, match="AUTHORIZATION"):
                async for item in streams.follow("orders", read):
                    found.append(item)
            return found

        for found in await asyncio.gather(follow(), follow()):
            assert found == list(range(81, 100))
        # A new viewer begins a new stream.
        assert len(await follow()) == 19

    asyncio.run(play())
