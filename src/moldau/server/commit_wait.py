"""Waiting until what was appended is committed: every in-sync replica has it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

from moldau.base.errors import ErrorCode, KafkaError
from moldau.replication.partition import Partition


def until_committed(partition: Partition, offset: int, timeout_ms: int) -> Awaitable[None]:
    """Begins to wait at once; the record at `offset` was appended just now and is not committed yet.

    KafkaError, as a produce request with `acks=all` gets it, when it is not committed by this leader in time.
    """
    settled: asyncio.Future[ErrorCode] = asyncio.get_running_loop().create_future()

    def settle(code: ErrorCode) -> None:
        if not settled.done():
            settled.set_result(code)

    partition.progress.when_committed(offset, settle)
    return _wait(settled, f"{partition.topic_partition} up to {offset}", timeout_ms)


async def _wait(settled: asyncio.Future[ErrorCode], what: str, timeout_ms: int) -> None:
    try:
        async with asyncio.timeout(timeout_ms / 1000):
            code = await settled
    except TimeoutError:
        raise KafkaError(
            ErrorCode.REQUEST_TIMED_OUT, f"{what} is not committed after {timeout_ms} ms"
        ) from None
    if code is not ErrorCode.NONE:
        raise KafkaError(code)
