"""The bound on concurrent work, while it changes."""

from __future__ import annotations

import asyncio

import pytest

from moldau.server.tiered.slots import Slots


def test_a_raised_bound_lets_waiting_tasks_continue() -> None:
    async def scenario() -> None:
        limit, running, most = 1, 0, 0
        slots, go = Slots(lambda: limit), asyncio.Event()

        async def work() -> None:
            nonlocal running, most
            async with slots:
                running += 1
                most = max(most, running)
                await go.wait()
                running -= 1

        tasks = [asyncio.create_task(work()) for _ in range(5)]
        await asyncio.sleep(0)
        assert running == 1
        limit = 3
        slots.wake()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert running == 3
        limit = 2
        go.set()
        await asyncio.gather(*tasks)
        assert most == 3

    asyncio.run(scenario())


@pytest.mark.parametrize("granted", [False, True])
def test_a_cancelled_task_passes_its_turn_on(granted: bool) -> None:
    async def scenario() -> None:
        slots = Slots(lambda: 1)
        await slots.__aenter__()
        first, second = (asyncio.create_task(slots.__aenter__()) for _ in range(2))
        await asyncio.sleep(0)
        if granted:
            await slots.__aexit__()
            first.cancel()
        else:
            first.cancel()
            await asyncio.sleep(0)
            await slots.__aexit__()
        await asyncio.wait_for(second, 1)
        with pytest.raises(asyncio.CancelledError):
            await first

    asyncio.run(scenario())
