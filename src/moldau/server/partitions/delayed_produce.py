"""Waiting until appended records are committed, that is, on every in-sync replica (`acks=all`)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from functools import partial

from moldau.base.errors import ErrorCode, KafkaError
from moldau.protocol.messages.produce import PartitionProduceResponse, TopicProduceData
from moldau.replication.partition import Partition

FailedPartitions = list[tuple[TopicProduceData, PartitionProduceResponse]]


class DelayedProduce:
    """The uncommitted partitions of one produce request: one future and one timer for all of them.

    A partition's response has the error REQUEST_TIMED_OUT until the partition is committed or has failed.
    """

    __slots__ = ("_completed", "_pending", "_responses", "_timeout_ms")

    def __init__(self, timeout_ms: int) -> None:
        self._timeout_ms = timeout_ms
        self._responses: FailedPartitions = []
        self._pending = 0
        self._completed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def add(
        self, partition: Partition, offset: int, topic: TopicProduceData, response: PartitionProduceResponse
    ) -> None:
        self._pending += 1
        self._responses.append((topic, response))
        response.error_code = ErrorCode.REQUEST_TIMED_OUT
        partition.progress.when_committed(offset, partial(self._settle, response))

    def _settle(self, response: PartitionProduceResponse, code: ErrorCode) -> None:
        if self._completed.done():
            return
        response.error_code = code
        self._pending -= 1
        if not self._pending:
            self._completed.set_result(None)

    async def wait(self) -> FailedPartitions:
        """Wait until all partitions are committed, or for `timeout_ms`; return those that failed."""
        timer = asyncio.get_running_loop().call_later(self._timeout_ms / 1000, self._time_out)
        try:
            await self._completed
        finally:
            timer.cancel()
        return [(topic, response) for topic, response in self._responses if response.error_code]

    def _time_out(self) -> None:
        if not self._completed.done():
            self._completed.set_result(None)


def until_committed(partition: Partition, offset: int, timeout_ms: int) -> Awaitable[None]:
    """Start to wait immediately for a record that was just appended and is not committed.

    The result raises the KafkaError of `acks=all` if this leader does not commit it within the timeout.
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
