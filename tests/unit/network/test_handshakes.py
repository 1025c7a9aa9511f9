from __future__ import annotations

import asyncio
import logging
import time

import pytest

from moldau.network.handshakes import Handshakes


class Begun:
    def __init__(self, handshakes: Handshakes) -> None:
        self.reasons: list[str] = []
        self._handshakes = handshakes
        handshakes.begin(self)

    def give_up(self, reason: str) -> None:
        self.reasons.append(reason)
        self._handshakes.end(self)


def test_over_the_limit_the_oldest_is_closed() -> None:
    handshakes = Handshakes(max_in_progress=2)
    first, second, third = Begun(handshakes), Begun(handshakes), Begun(handshakes)
    assert [len(each.reasons) for each in (first, second, third)] == [1, 0, 0]
    handshakes.end(second)
    Begun(handshakes)
    assert third.reasons == []
    assert handshakes.in_progress == 2


def test_steps_leave_time_for_others() -> None:
    """A flood of handshakes does not hold the loop: another callback runs between slices."""
    asyncio.run(_flood())


async def _flood() -> None:
    handshakes, loop = Handshakes(), asyncio.get_running_loop()
    done: list[float] = []

    def step() -> None:
        end = time.perf_counter() + 0.001
        while time.perf_counter() < end:
            pass
        done.append(end)

    for _ in range(50):
        handshakes.run(step, loop)
    counts = []
    while len(done) < 50:
        await asyncio.sleep(0)
        counts.append(len(done))
    assert max(b - a for a, b in zip([0, *counts], counts, strict=False)) <= 6


def test_a_failed_step_does_not_stop_the_others() -> None:
    asyncio.run(_failure())


async def _failure() -> None:
    handshakes, loop = Handshakes(), asyncio.get_running_loop()
    loop.set_exception_handler(lambda _loop, _context: None)
    done = asyncio.Event()

    def fail() -> None:
        raise RuntimeError("a broken step")

    handshakes.run(fail, loop)
    handshakes.run(done.set, loop)
    await asyncio.wait_for(done.wait(), 5)


def test_each_reason_is_logged_once_a_second(caplog: pytest.LogCaptureFixture) -> None:
    handshakes = Handshakes()
    with caplog.at_level(logging.INFO):
        for _ in range(1000):
            handshakes.log_failure("10.0.0.1", "one")
            handshakes.log_failure("10.0.0.2", "two")
    assert caplog.messages == [
        "TLS handshake with 10.0.0.1 failed: one",
        "TLS handshake with 10.0.0.2 failed: two",
    ]
