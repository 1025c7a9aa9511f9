"""Long work yields to other tasks after a slice of time, and not before."""

from __future__ import annotations

import asyncio

from moldau.base.clock import ManualClock
from moldau.base.loop_slice import SLICE_SECONDS, LoopSlice


def test_pause_yields_after_a_slice() -> None:
    clock = ManualClock()
    happened: list[str] = []

    async def work() -> None:
        turn = LoopSlice(clock)
        for number in range(4):
            happened.append(f"piece {number}")
            clock.advance(int(SLICE_SECONDS * 1000))
            await turn.pause()

    async def other() -> None:
        happened.append("other")

    async def both() -> None:
        await asyncio.gather(work(), other())

    asyncio.run(both())
    assert happened == ["piece 0", "piece 1", "other", "piece 2", "piece 3"]
