"""The queue of tasks that run one at a time."""

from __future__ import annotations

import asyncio

from moldau.base.errors import KafkaError
from moldau.quorum.serial_queue import MAX_QUEUED, SerialQueue
from tests.unit.quorum.harness import run


def test_queue_is_bounded() -> None:
    async def test() -> None:
        failures: list[Exception] = []
        queue = SerialQueue(failures.append)
        queue.start()
        gate: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        async def wait() -> None:
            await gate

        waiting = [asyncio.ensure_future(queue.run(wait)) for _ in range(MAX_QUEUED + 2)]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        rejected = [each for each in waiting if each.done()]
        assert {type(each.exception()) for each in rejected} == {KafkaError}
        gate.set_result(None)
        await asyncio.gather(*(each for each in waiting if each not in rejected))
        await queue.run(wait)
        await queue.close()
        assert not failures

    run(test)
