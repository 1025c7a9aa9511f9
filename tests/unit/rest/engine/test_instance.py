"""The requests of an instance take turns, and only reads give way."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

from moldau.rest.engine.consumer import PolledConsumer
from moldau.rest.engine.instance import Instance, InstanceConfig


def test_a_read_notices_that_a_request_waits_for_its_turn() -> None:
    asyncio.run(_take_turns())


async def _take_turns() -> None:
    with ThreadPoolExecutor(1) as pool:
        consumer = PolledConsumer({"bootstrap.servers": "127.0.0.1:1", "group.id": "g"}, pool)
        instance = Instance("g", "i", InstanceConfig(), consumer, None)
        order: list[str] = []
        try:
            async with instance.exclusive(interrupt=False):
                reading = asyncio.ensure_future(_turn(instance, order, "read", interrupt=False))
                await asyncio.sleep(0)
                assert not instance.is_claimed
                seeking = asyncio.ensure_future(_turn(instance, order, "seek", interrupt=True))
                cancelled = asyncio.ensure_future(_turn(instance, order, "cancelled", interrupt=True))
                await asyncio.sleep(0)
                assert instance.is_claimed
                cancelled.cancel()
            await asyncio.wait_for(asyncio.gather(reading, seeking), 20)
            assert order == ["read", "seek"]
            assert not instance.is_claimed
        finally:
            await asyncio.wait_for(consumer.close(), 20)


async def _turn(instance: Instance, order: list[str], name: str, *, interrupt: bool) -> None:
    async with instance.exclusive(interrupt=interrupt):
        order.append(name)
