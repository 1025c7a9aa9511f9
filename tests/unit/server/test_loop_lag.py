"""Loop lag: what holds the loop is seen, counted, and said once."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from moldau.base.clock import SystemClock
from moldau.server.loop_lag import BUDGET_MS, LoopLag
from tests.harness.nodes.node import running_node


@asynccontextmanager
async def _watching() -> AsyncIterator[LoopLag]:
    lag = LoopLag(SystemClock())
    lag.start()
    try:
        yield lag
    finally:
        lag.stop()


async def _looked(lag: LoopLag) -> None:
    """Until the next look has been taken."""
    before = lag.samples
    async with asyncio.timeout(10):
        while lag.samples == before:
            await asyncio.sleep(0.005)


def _hold_the_loop(seconds: float) -> None:
    time.sleep(seconds)


def test_a_blocking_callback_is_measured() -> None:
    async def scene() -> None:
        async with _watching() as lag:
            await _looked(lag)
            _hold_the_loop(0.15)
            await _looked(lag)
            assert lag.last_ms > BUDGET_MS
            assert lag.largest_ms >= lag.last_ms
            assert lag.over_budget >= 1

    asyncio.run(scene())


def test_a_long_lag_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    async def scene() -> None:
        async with _watching() as lag:
            for _ in range(2):
                await _looked(lag)
                _hold_the_loop(0.3)
                await _looked(lag)

    with caplog.at_level(logging.WARNING, logger="moldau.server.loop_lag"):
        asyncio.run(scene())
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "the event loop was blocked" in caplog.text


def test_a_node_measures_the_lag_until_it_stops(tmp_path: Path) -> None:
    async def scene() -> None:
        async with running_node(tmp_path) as node:
            await _looked(node.loop_lag)
            looks = node.loop_lag.samples
        await asyncio.sleep(0.12)
        assert node.loop_lag.samples - looks <= 2

    asyncio.run(scene())
