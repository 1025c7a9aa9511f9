"""Clock and thread pool of a simulated node, driven by the loop's virtual clock."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

#: The wall-clock time at which simulations begin.
EPOCH_MS = 1_700_000_000_000


class SimulatedClock:
    """The clocks of one node: `offset_ms` is the error of the wall clock, `speed` the rate of both clocks."""

    def __init__(self, loop: asyncio.AbstractEventLoop, offset_ms: int = 0, speed: float = 1.0) -> None:
        self._loop = loop
        self.offset_ms = offset_ms
        self.speed = speed

    def time_ms(self) -> int:
        return EPOCH_MS + round(self.monotonic() * 1000) + self.offset_ms

    def time_ns(self) -> int:
        return self.time_ms() * 1_000_000

    def monotonic(self) -> float:
        return self._loop.time() * self.speed


class SimulatedPool:
    """Work starts and ends after random delays, so that overlapping work ends in any order.

    Like a thread, work continues after its caller stopped waiting. `slowness` stretches the delays.
    """

    def __init__(
        self, random: Random, *, delay_ms: float = 1.0, part_of: SimulatedPool | None = None
    ) -> None:
        """`part_of`: the pool of the same machine, whose slowness counts."""
        self.slowness = 1.0
        self._random = random
        self._delay = delay_ms / 1000
        self._closed = False
        self._machine = part_of or self

    async def run(self, fn: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        if self._closed:
            raise RuntimeError("the pool is closed")
        loop = asyncio.get_running_loop()
        future: asyncio.Future[R] = loop.create_future()

        def work() -> None:
            try:
                result = fn(*args, **kwargs)
            except Exception as error:  # noqa: BLE001  it is raised in the caller
                loop.call_later(self._wait(), _fail, future, error)
            else:
                loop.call_later(self._wait(), _finish, future, result)

        loop.call_later(self._wait(), work)
        return await future

    def separate(self, threads: int, name: str) -> SimulatedPool:
        return SimulatedPool(self._random, delay_ms=self._delay * 1000, part_of=self._machine)

    def _wait(self) -> float:
        return self._random.random() * self._delay * self._machine.slowness

    def resize(self, threads: int) -> None:
        return None

    def close(self) -> None:
        self._closed = True


def _finish(future: asyncio.Future[R], result: R) -> None:
    if not future.done():
        future.set_result(result)


def _fail(future: asyncio.Future[R], error: Exception) -> None:
    if not future.done():
        future.set_exception(error)
